//! Where sessions are kept.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, BrowserId, SessionId},
    request::ListQuery,
    session::{Change, Session},
};

use crate::StoreError;

/// Keeps sessions, and with each move of one the effects it owes.
///
/// Whatever implements this passes `testkit::store_contract!`.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Saves a new session together with its first effects.
    async fn insert(&self, opening: &Change) -> Result<(), StoreError>;

    /// Finds a session of this owner's; another's is as good as absent.
    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Finds a session whoever owns it: for the applicant, whose token has been checked, and for
    /// workers, which serve all owners. Never for a partner.
    async fn open(&self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// The owner's sessions, newest first and ties by id, and how many fit the filter in all.
    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<Session>, i64), StoreError>;

    /// Saves a moved session and its effects: all or nothing. A notice to the partner becomes one
    /// delivery for each webhook of the team that is active at this moment.
    ///
    /// The saved version must be the one before `change.session.version`, else the answer is
    /// [`CommitError::Stale`] and nothing is saved. A browser that is new with this change is
    /// taken to be alive until `alive_until`.
    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError>;

    /// Says that a session's browser is alive until then. `false`: the session no longer has it.
    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Up to `limit` open sessions that have expired, or whose browser nobody renewed.
    async fn due(&self, now: DateTime<Utc>, limit: u16) -> Result<Vec<(Session, Due)>, StoreError>;
}

/// Why time has come for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Expired,
    BrowserLapsed(BrowserId),
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("the session was saved by somebody else meanwhile")]
    Stale,
    #[error(transparent)]
    Store(#[from] StoreError),
}
