//! The row of a session, in which the applicant's data is encrypted.

use ::diesel::prelude::*;
use chrono::{DateTime, Utc};
use domain::session::{Progress, Session, State, Version};
use ports::StoreError;

use crate::engine::column::{Id, Timestamp};
use crate::engine::data_key::{STATE, TERMS};
use crate::engine::database::{Store, failed};
use crate::engine::keyring::WriteKey;
use crate::engine::schema::sessions;

/// The column by which sessions are searched, and the input of its blind index.
pub(crate) const REFERENCE: &str = "sessions.reference";

/// A session as it is stored.
#[derive(Clone, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = sessions, treat_none_as_null = true)]
#[diesel(check_for_backend(::diesel::pg::Pg, ::diesel::sqlite::Sqlite))]
pub(crate) struct SessionRow {
    pub(crate) id: Id,
    pub(crate) owner: Id,
    pub(crate) terms: String,
    pub(crate) state: String,
    pub(crate) status: String,
    pub(crate) progress: i32,
    pub(crate) workflow: Option<String>,
    pub(crate) version: i32,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) closed_at: Option<Timestamp>,
    pub(crate) platform: i32,
    pub(crate) erased_at: Option<Timestamp>,
    pub(crate) reference: Option<String>,
}

/// The lease of a session's browser, as its row has it after a change.
#[derive(Clone, Copy)]
pub(crate) struct LeaseColumns {
    pub(crate) browser: Option<Id>,
    /// The end of the lease of a browser that is new with the change; `None` to leave it.
    pub(crate) alive_until: Option<Timestamp>,
}

impl LeaseColumns {
    /// `alive_until` applies if the browser is new.
    pub(crate) fn of(session: &Session, alive_until: DateTime<Utc>) -> Self {
        let is_new = matches!(session.state, State::Initializing { .. });
        Self {
            browser: session.state.lease().map(|lease| Id::from(lease.browser)),
            alive_until: is_new.then_some(Timestamp(alive_until)),
        }
    }
}

impl SessionRow {
    pub(crate) fn of(session: &Session, writer: &WriteKey) -> Result<Self, StoreError> {
        let unfit = failed("write a session down");
        let id = Id::from(session.id);
        let terms = serde_json::to_string(&session.terms).map_err(&unfit)?;
        let state = serde_json::to_string(&session.state).map_err(&unfit)?;
        let reference = session.terms.external_reference.as_deref();
        let workflow = session.workflow.as_ref().map(serde_json::to_string).transpose();
        Ok(Self {
            id,
            owner: Id::from(session.owner),
            terms: writer.encrypt(TERMS, id, &terms)?,
            state: writer.encrypt(STATE, id, &state)?,
            status: session.status().to_string(),
            progress: session.progress.percent().into(),
            workflow: workflow.map_err(&unfit)?,
            version: session.version.0,
            created_at: Timestamp(session.created_at),
            expires_at: Timestamp(session.expires_at),
            closed_at: session.closed_at.map(Timestamp),
            platform: session.terms.platform.0,
            erased_at: session.erased_at.map(Timestamp),
            reference: reference.map(|reference| writer.index(REFERENCE, reference)),
        })
    }

    fn read(self) -> Result<Session, StoreError> {
        let unfit = failed("read a session back");
        let workflow = self.workflow.map(|text| serde_json::from_str(&text)).transpose();
        let progress = u8::try_from(self.progress).ok().and_then(Progress::new);
        Ok(Session {
            id: self.id.to(),
            owner: self.owner.to(),
            terms: serde_json::from_str(&self.terms).map_err(&unfit)?,
            state: serde_json::from_str(&self.state).map_err(&unfit)?,
            progress: progress
                .ok_or_else(|| StoreError::new("read a session back", "progress out of range"))?,
            workflow: workflow.map_err(&unfit)?,
            version: Version(self.version),
            created_at: self.created_at.0,
            expires_at: self.expires_at.0,
            closed_at: self.closed_at.map(|moment| moment.0),
            erased_at: self.erased_at.map(|moment| moment.0),
        })
    }
}

impl Store {
    /// Decrypts and parses a session whose team is not known yet.
    pub(crate) async fn read_session(&self, row: SessionRow) -> Result<Session, StoreError> {
        let team = self.team_of_key(row.owner).await?;
        self.read_session_of(team, row).await
    }

    /// Like [`Store::read_session`], for a session of a key whose team is known.
    pub(crate) async fn read_session_of(
        &self,
        team: Id,
        row: SessionRow,
    ) -> Result<Session, StoreError> {
        let terms = self.opened(team, TERMS, row.id, row.terms).await?;
        let state = self.opened(team, STATE, row.id, row.state).await?;
        SessionRow { terms, state, ..row }.read()
    }
}
