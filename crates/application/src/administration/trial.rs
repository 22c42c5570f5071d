//! One session of a definition that is tried out: its author plays the applicant.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, Environment},
    id::{ApiKeyId, PlatformId, TeamId},
    request::{InvalidRequest, NewSession},
    session::Status,
    webhook::payload,
};
use ports::{
    StoreError,
    clock::Clock,
    driving::{Caller, CreateError, SessionError, SessionService},
    key_store::{KeyStore, TeamStore},
    random::RandomSource,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api_keys::ApiKeyText;

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Creates a session of a platform, and follows it to its end.
pub struct TrialSession {
    pub sessions: Arc<dyn SessionService>,
    pub clock: Arc<dyn Clock>,
    pub caller: Caller,
    pub platform: PlatformId,
}

/// What an author is told during a trial.
#[derive(Clone, PartialEq, Eq)]
pub enum TrialProgress {
    /// The URL with which the author plays the applicant.
    Created {
        embed_url: String,
    },
    Changed {
        at: DateTime<Utc>,
        status: Status,
    },
}

/// The end of a trial.
pub struct TrialEnd {
    pub status: Status,
    /// What a webhook would be sent.
    pub payload: Value,
}

impl TrialEnd {
    /// Returns whether data was shared, all of it or a part.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        matches!(self.status, Status::Completed | Status::PartialComplete)
    }
}

/// Why a trial was not followed to its end.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Request(#[from] InvalidRequest),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Read(#[from] SessionError),
}

impl TrialSession {
    /// Creates a team with a key for a trial in this environment, and returns the key's record. The
    /// key itself is not needed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn create_caller(
        (teams, keys): (&dyn TeamStore, &dyn KeyStore),
        (clock, random): (&dyn Clock, &dyn RandomSource),
        environment: Environment,
    ) -> Result<Caller, StoreError> {
        let now = clock.now();
        let [team, key] = [(); 2].map(|()| Uuid::from_u128(random.new_id()));
        let team = TeamId::from_uuid(team);
        teams.add_team(team, "Author", now).await?;
        let id = ApiKeyId::from_uuid(key);
        let key = ApiKey { id, team, environment, expires_at: None, revoked_at: None };
        let hash = ApiKeyText::new(environment, random.random_bytes()).hash();
        keys.add_key(&key, &hash, "Trial", now).await?;
        Ok(key)
    }

    /// Runs the session to its end, and reports each change of its status.
    ///
    /// # Errors
    /// The session cannot be created or read.
    pub async fn run(
        &self,
        report: &(dyn Fn(TrialProgress) + Sync),
    ) -> Result<TrialEnd, TrialError> {
        let body = json!({ "platformId": self.platform.0, "location": { "country": "US" } });
        let request = NewSession::read(&body)?;
        let created = self.sessions.create(&self.caller, request, None).await?.view;
        let (id, mut status) = (created.session.id, created.session.status());
        report(TrialProgress::Created { embed_url: created.embed_url });
        loop {
            let session = self.sessions.read(&self.caller, id).await?.session;
            if session.status() != status {
                status = session.status();
                report(TrialProgress::Changed { at: self.clock.now(), status });
            }
            if let Some(payload) = payload(&session) {
                return Ok(TrialEnd { status, payload });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
