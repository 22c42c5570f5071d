//! A team's sessions, as the portal shows and ends them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{Days, NaiveTime};
use domain::{
    account::Permission,
    api_key::ApiKey,
    id::{PlatformId, SessionId},
    request::ListQuery,
    session::Session,
};
use ports::{
    StoreError,
    driving::{
        FailingNode, Overview, PortableAttestation, PortalError, SessionDetails, SessionError,
        SignedInUser, TeamQuotas, TeamSession, TeamSessionService,
    },
};

use super::{People, overview};
use crate::settings::Limits;

/// Days of an overview, today among them.
const DAYS: u64 = 30;
/// The most sessions that an overview looks at.
const MAX_SESSIONS_COUNTED: u16 = 20_000;

#[async_trait]
impl TeamSessionService for People {
    async fn team_sessions(
        &self,
        visitor: &SignedInUser,
        query: ListQuery,
        reference: Option<String>,
    ) -> Result<Vec<TeamSession>, PortalError> {
        visitor.require(Permission::Look)?;
        let reference = reference.as_deref();
        let found = self.sessions.team_sessions(visitor.team, query, reference).await?;
        let keys = self.keys.keys(visitor.team).await?;
        let mut platforms = BTreeMap::new();
        let mut listed = vec![];
        for (owner, summary) in found {
            let platform = match platforms.get(&summary.platform) {
                Some(known) => String::clone(known),
                None => self.platform(summary.platform).await?,
            };
            platforms.insert(summary.platform, platform.clone());
            let key = keys.iter().find(|kept| kept.key.id == owner);
            let key = key.map_or_else(String::new, |kept| kept.label.clone());
            listed.push(TeamSession { summary, platform, key });
        }
        Ok(listed)
    }

    async fn overview(&self, visitor: &SignedInUser) -> Result<Overview, PortalError> {
        visitor.require(Permission::Look)?;
        let today = self.core.clock.now().date_naive();
        let first = today - Days::new(DAYS - 1);
        let since = first.and_time(NaiveTime::MIN).and_utc();
        let came = self.sessions.team_activity(visitor.team, since, MAX_SESSIONS_COUNTED).await?;
        let mut nodes = vec![];
        for ((platform, node, why), count) in overview::nodes(&came) {
            let platform = self.platform(platform).await?;
            nodes.push(FailingNode { platform, node, why, count });
        }
        let cut = came.len() == usize::from(MAX_SESSIONS_COUNTED);
        Ok(overview::of(&came, first, DAYS, nodes, cut))
    }

    async fn quotas(&self, visitor: &SignedInUser) -> Result<TeamQuotas, PortalError> {
        visitor.require(Permission::Look)?;
        let (running, waiting) = self.core.queue().of_team(visitor.team);
        let Limits { requests, creations, team_creations, recipient } = self.limits;
        let browsers = self.quotas;
        Ok(TeamQuotas {
            requests,
            creations,
            team_creations,
            recipient,
            browsers,
            running,
            waiting,
        })
    }

    async fn team_session(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<SessionDetails, PortalError> {
        visitor.require(Permission::Look)?;
        let (session, key) = self.of_team(visitor, id).await?;
        let timeline = self.partners.timeline(&key, id).await.map_err(told)?;
        let recording = match self.partners.recording(&key, id).await {
            Ok(recording) => Some(recording),
            Err(SessionError::NotFound) => None,
            Err(error) => return Err(told(error)),
        };
        let keys = self.keys.keys(visitor.team).await?;
        let label = keys.into_iter().find(|kept| kept.key.id == key.id);
        let platform = self.platform(session.terms.platform).await?;
        let key = label.map_or_else(String::new, |kept| kept.label);
        Ok(SessionDetails { session, platform, key, timeline, recording })
    }

    async fn team_attestation(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<PortableAttestation, PortalError> {
        visitor.require(Permission::Work)?;
        let (_, key) = self.of_team(visitor, id).await?;
        let found = self.partners.attestation(&key, id).await.map_err(told)?;
        let attestation = found.ok_or(PortalError::NotFound("attestation"))?;
        self.note(visitor, "session.attestation", &id.to_string()).await?;
        Ok(attestation)
    }

    async fn end_session(&self, visitor: &SignedInUser, id: SessionId) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        let (_, key) = self.of_team(visitor, id).await?;
        self.note(visitor, "session.end", &id.to_string()).await?;
        self.partners.terminate(&key, id).await.map_err(told)?;
        Ok(())
    }
}

impl People {
    /// A session of the visitor's team, with the key that it was created with.
    pub(super) async fn of_team(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<(Session, ApiKey), PortalError> {
        let absent = PortalError::NotFound("session");
        let Some(session) = self.sessions.find_unscoped(id).await? else { return Err(absent) };
        let key = self.keys.key(session.owner).await?.filter(|key| key.team == visitor.team);
        key.map(|key| (session, key)).ok_or(absent)
    }

    async fn platform(&self, id: PlatformId) -> Result<String, StoreError> {
        let platform = self.catalogue.platform(id).await?;
        Ok(platform.map_or_else(String::new, |platform| platform.display_name))
    }
}

fn told(error: SessionError) -> PortalError {
    match error {
        SessionError::NotFound => PortalError::NotFound("session"),
        SessionError::Busy => PortalError::Invalid("that session is busy: try again".into()),
        SessionError::Store(error) => error.into(),
    }
}
