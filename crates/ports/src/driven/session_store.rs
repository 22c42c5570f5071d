//! Where sessions are kept.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, KeyHash},
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, BrowserId, PlatformId, SessionId, TeamId},
    platform::PlatformSummary,
    request::ListQuery,
    session::{Change, Session, Status},
};

use crate::StoreError;

/// Names one creation, so that asking twice creates once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// 1 to 255 printable ASCII characters, chosen by the partner.
    pub key: String,
    /// SHA-256 of the request.
    pub request: [u8; 32],
    /// What was created under the key before this moment no longer counts.
    pub since: DateTime<Utc>,
}

/// What came of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertOutcome {
    Fresh,
    /// The same request under the same key came before, and created this.
    Before(Box<Session>),
    /// Another request came under the same key before.
    OtherRequest,
    /// A request under the same key is being carried out.
    InFlight,
}

/// A poll's answer: the record behind the key, and its session if there is one of that id.
pub type PolledRecord = (ApiKey, Option<(Session, Option<PlatformSummary>)>);

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub status: Status,
    pub platform: PlatformId,
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
}

/// One step of a session's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntry {
    pub at: DateTime<Utc>,
    pub event: String,
    pub status: Status,
    pub error_code: Option<String>,
    /// The workflow's node at which the session failed.
    pub node: Option<String>,
    /// More of it: why a link was not delivered.
    pub detail: Option<String>,
}

/// Keeps sessions, and with each move of one the effects it owes.
///
/// Whatever implements this passes `testkit::store_contract!`.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Saves a new session together with its first effects. With an idempotency key only where
    /// the owner has not used it since the moment it names; else nothing is saved.
    async fn insert(
        &self,
        opening: &Change,
        once: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError>;

    /// The record whose key has this hash (revoked and expired ones included), and that record's
    /// session of this id, in one round trip.
    async fn poll(&self, key: &KeyHash, id: SessionId) -> Result<Option<PolledRecord>, StoreError>;

    /// Finds a session of this owner's; another's is as good as absent.
    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Finds a session whoever owns it: for the applicant, whose token has been checked, and for
    /// workers, which serve all owners. Never for a partner.
    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Whose pages may show a session in a frame: what its owner's team set.
    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError>;

    /// The owner's sessions, newest first and ties by id, and how many fit the filter in all.
    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), StoreError>;

    /// Sessions of all of a team's keys, newest first and ties by id, each with its owner; where a
    /// reference is given, those that the partner calls so.
    async fn team_sessions(
        &self,
        team: TeamId,
        query: ListQuery,
        reference: Option<&str>,
    ) -> Result<Vec<(ApiKeyId, SessionSummary)>, StoreError>;

    /// What came of a team's sessions since a moment: of the newest ones, up to `limit`.
    async fn team_activity(
        &self,
        team: TeamId,
        since: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError>;

    /// What happened to a session of this owner's, oldest first. `None`: there is no such session.
    async fn timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<TimelineEntry>>, StoreError>;

    /// Up to `limit` sessions that closed before `before` and hold data still.
    async fn find_unerased(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<SessionId>, StoreError>;

    /// Removes what was overwritten from a log that the store keeps beside its data, where it has
    /// one that can be emptied. Waits for readers for less than a second; `false`: one of them held
    /// it back, and it is to be tried again.
    async fn truncate_log(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Forgets idempotency keys that were used before `before`. Answers how many.
    async fn delete_idempotency_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError>;

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
    async fn find_due(
        &self,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<(Session, DueReason)>, StoreError>;
}

/// Why time has come for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueReason {
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

/// When a session was, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionActivity {
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub status: Status,
    pub platform: PlatformId,
    /// Of the session's last step, if that had one.
    pub error_code: Option<String>,
    /// The workflow's node at which it failed.
    pub node: Option<String>,
}
