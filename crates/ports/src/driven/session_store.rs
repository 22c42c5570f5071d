//! The store of sessions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, Environment, KeyHash},
    error_code::ErrorCode,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, BrowserId, PlatformId, SessionId, TeamId},
    platform::PlatformSummary,
    request::ListQuery,
    session::{Change, Session, Status},
};

use crate::StoreError;

/// An idempotency key of a create request: repeating the request creates one session only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// 1 to 255 printable ASCII characters, chosen by the partner.
    pub key: String,
    /// The SHA-256 hash of the request.
    pub request: [u8; 32],
    /// The time from which on a use of the key counts; earlier uses have expired.
    pub since: DateTime<Utc>,
}

/// The result of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InsertOutcome {
    Fresh,
    /// The same request with the same key was made before, and created this session.
    Before(Box<Session>),
    /// Another request with the same key was made before.
    OtherRequest,
    /// A request with the same key is being processed.
    InFlight,
}

/// The answer to a poll: the record of the key, and its session with the given identifier.
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

/// An entry of a session's timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineEntry {
    pub at: DateTime<Utc>,
    pub event: String,
    pub status: Status,
    pub error_code: Option<String>,
    /// The workflow node at which the session failed.
    pub node: Option<String>,
    /// A detail of the event: why a link was not delivered.
    pub detail: Option<String>,
}

/// Stores sessions, and with each transition its jobs and records.
///
/// Every implementation passes `testkit::stores_contract!`.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Saves a new session together with its first effects. With an idempotency key, the session is
    /// saved only if the owner has not used the key since the time in it.
    async fn insert(
        &self,
        opening: &Change,
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<InsertOutcome, StoreError>;

    /// Finds a session of any owner: for the applicant, whose token has been verified, and for
    /// workers, which serve all owners. For a partner the caller compares the owner before it does
    /// anything with the session.
    async fn find_unscoped(&self, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Returns the origins whose pages may embed a session, as its owner's team has set them.
    async fn frame_ancestors_of(&self, id: SessionId) -> Result<Vec<FrameAncestor>, StoreError>;

    /// Saves a changed session and its effects atomically. [`Record::NotifyPartner`] becomes one
    /// delivery for each webhook of the team that is active at this moment.
    ///
    /// [`Record::NotifyPartner`]: domain::session::Record::NotifyPartner
    ///
    /// The saved version must be the one before `change.session.version`; otherwise the result is
    /// [`CommitError::Stale`], and nothing is saved. A browser that is new with this change has a
    /// lease until `alive_until`. If the future is dropped, the change is saved as a whole or not at
    /// all, possibly a moment later.
    async fn commit(&self, change: &Change, alive_until: DateTime<Utc>) -> Result<(), CommitError>;
}

/// Reads sessions for the API key that owns them.
#[async_trait]
pub trait SessionQueries: Send + Sync {
    /// Returns the record whose key has this hash (revoked and expired ones included), and that
    /// record's session with this identifier, in one round trip.
    async fn poll(&self, key: &KeyHash, id: SessionId) -> Result<Option<PolledRecord>, StoreError>;

    /// Finds a session of this owner. A session of another owner counts as absent.
    async fn find(&self, owner: ApiKeyId, id: SessionId) -> Result<Option<Session>, StoreError>;

    /// Returns the owner's sessions, newest first and ties by identifier, and the total number of
    /// those that match the filter.
    async fn list(
        &self,
        owner: ApiKeyId,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), StoreError>;

    /// Returns the timeline of a session of this owner, oldest entry first. `None` if there is no
    /// such session.
    async fn timeline(
        &self,
        owner: ApiKeyId,
        id: SessionId,
    ) -> Result<Option<Vec<TimelineEntry>>, StoreError>;
}

/// Reads the sessions of all keys of a team.
#[async_trait]
pub trait TeamSessionQueries: Send + Sync {
    /// Returns up to `limit` of the sessions of all keys of a team that match, newest first and
    /// ties by identifier, from after the cursor on.
    ///
    /// A text that is the external reference of sessions finds these, however old they are.
    /// Otherwise it finds sessions in whose reference or identifier it occurs. References are
    /// encrypted, so one call examines about [`MAX_SESSIONS_EXAMINED`] sessions: the page may have
    /// fewer sessions than the limit, or none, although its cursor leads to more.
    async fn team_sessions(
        &self,
        team: TeamId,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: u16,
    ) -> Result<TeamSessionPage, StoreError>;

    /// Returns the activity of a team's sessions of a period: of up to `limit`, the newest ones.
    async fn team_activity(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<SessionActivity>, StoreError>;

    /// Returns how many of the sessions of [`Self::team_activity`] have ever had each status. A
    /// status that none has had may be absent.
    async fn team_statuses(
        &self,
        team: TeamId,
        period: ActivityPeriod,
        limit: u16,
    ) -> Result<Vec<(Status, usize)>, StoreError>;
}

/// The sessions that one search for a part of a reference examines.
pub const MAX_SESSIONS_EXAMINED: usize = 2_000;

/// Which sessions of a team are listed. `None` permits every value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    pub status: Option<Status>,
    /// The error code with which the session ended.
    pub error_code: Option<ErrorCode>,
    pub platform: Option<PlatformId>,
    pub environment: Option<Environment>,
    /// Created at this time or later.
    pub from: Option<DateTime<Utc>>,
    /// Created before this time.
    pub to: Option<DateTime<Utc>>,
    /// A text in the session's external reference or identifier, without regard to the case of
    /// ASCII letters.
    pub text: Option<String>,
}

impl SessionFilter {
    /// Returns the environments that match.
    #[must_use]
    pub fn environments(&self) -> Vec<Environment> {
        let all = [Environment::Development, Environment::Production];
        self.environment.map_or_else(|| all.to_vec(), |environment| vec![environment])
    }
}

/// The sessions whose activity is read: those of an environment that were created since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityPeriod {
    pub environment: Environment,
    pub since: DateTime<Utc>,
}

/// A position in a team's list of sessions: behind the session with this time and identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionCursor {
    pub created_at: DateTime<Utc>,
    pub id: SessionId,
}

/// A session in a team's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    pub owner: ApiKeyId,
    pub summary: SessionSummary,
    pub environment: Environment,
    /// The external reference that the partner gave.
    pub reference: Option<String>,
    /// The error code with which the session ended.
    pub error_code: Option<String>,
}

impl ListedSession {
    #[must_use]
    pub const fn cursor(&self) -> SessionCursor {
        SessionCursor { created_at: self.summary.created_at, id: self.summary.id }
    }

    /// Returns whether a text occurs in the session's reference or identifier, without regard to
    /// the case of ASCII letters.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let reference = self.reference.as_deref().unwrap_or_default().to_ascii_lowercase();
        reference.contains(&text) || self.summary.id.to_string().contains(&text)
    }
}

/// A page of a team's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSessionPage {
    pub sessions: Vec<ListedSession>,
    /// Where the next page begins; `None` at the end of the list.
    pub next: Option<SessionCursor>,
}

impl TeamSessionPage {
    /// Returns the page with the first `limit` of these sessions, of which there is at least one
    /// more than the limit unless the list ends with them.
    #[must_use]
    pub fn first(mut sessions: Vec<ListedSession>, limit: u16) -> Self {
        let more = sessions.len() > usize::from(limit);
        sessions.truncate(limit.into());
        let last = sessions.last().map(ListedSession::cursor);
        Self { next: last.filter(|_| more), sessions }
    }
}

/// Renews the leases of sessions' browsers, and finds what expired.
#[async_trait]
pub trait BrowserLeases: Send + Sync {
    /// Renews the lease of a session's browser. Returns `false` if the session no longer has this
    /// browser.
    async fn renew(
        &self,
        id: SessionId,
        browser: BrowserId,
        alive_until: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Returns up to `limit` open sessions that have expired, or whose browser's lease was not
    /// renewed.
    async fn find_due(
        &self,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<Vec<(Session, DueReason)>, StoreError>;
}

/// Finds and deletes what was kept for its time.
#[async_trait]
pub trait SessionRetention: Send + Sync {
    /// Returns up to `limit` sessions that closed before `before`, come after `after`, and are not erased,
    /// in their order. A caller that passes the last one of a list as `after` reads on behind sessions that
    /// it could not erase.
    async fn find_unerased(
        &self,
        before: DateTime<Utc>,
        after: Option<ClosedSession>,
        limit: u16,
    ) -> Result<Vec<ClosedSession>, StoreError>;

    /// Deletes up to `limit` erased sessions that were created before `before`, the oldest ones first, and
    /// with each its timeline, devices, messages and the record of its recording; after that the session
    /// is unknown. A session with a job that waits, or that was given up, is kept. Deliveries have
    /// a period of their own ([`delete_old_deliveries`]), and idempotency keys are to be deleted first.
    /// Returns the number of deleted sessions.
    ///
    /// [`delete_old_deliveries`]: crate::delivery_log::DeliveryLog::delete_old_deliveries
    async fn delete_erased_sessions(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError>;

    /// Has a store with partitions create those of this month and the next two, and drop those from whose
    /// months no session is left, of sessions that were created before `before`. Waits for others for
    /// less than a second; what could not be done is done by a later call.
    async fn maintain_partitions(
        &self,
        _now: DateTime<Utc>,
        _before: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Has a store remember how many sessions were created before `before`, up to the first open one of each
    /// key, so that the total of a list takes no longer with them; of up to `limit` keys for which that was
    /// some hours ago. No session may be created before `before` any more, or be created before `before` and
    /// change its time. Returns the number of keys; fewer than `limit` if there are no more.
    async fn count_sessions(
        &self,
        _now: DateTime<Utc>,
        _before: DateTime<Utc>,
        _limit: u16,
    ) -> Result<usize, StoreError> {
        Ok(0)
    }

    /// Truncates the write-ahead log, if the store has one, so that overwritten data does not remain
    /// in it. Waits for readers for less than a second. Returns `false` if a reader prevented the
    /// truncation; the caller tries again later.
    async fn truncate_log(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Deletes idempotency keys that were used before `before` and returns their number.
    async fn delete_idempotency_keys(&self, before: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// A closed session; ordered by the time at which it closed, then by its identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClosedSession {
    pub closed_at: DateTime<Utc>,
    pub id: SessionId,
}

/// Why a session is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueReason {
    Expired,
    BrowserLapsed(BrowserId),
}

#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("the session was saved concurrently")]
    Stale,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The times and the result of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionActivity {
    pub created_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub status: Status,
    pub platform: PlatformId,
    /// The error code of the session's last timeline entry, if it has one.
    pub error_code: Option<String>,
    /// The workflow node at which the session failed.
    pub node: Option<String>,
}
