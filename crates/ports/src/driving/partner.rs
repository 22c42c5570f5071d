//! The services that partners use through the REST API.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, Environment},
    definition_health::{Drift, VersionHealth},
    id::{ApiKeyId, SessionId, TeamId},
    notification::Channel,
    platform::{Platform, PlatformSummary},
    rate::RateWindow,
    request::{GivenData, InvalidRequest, ListQuery, NewSession},
    secret::Secret,
    session::{ProofHash, Session, SkippedTime},
    workflow::PlatformProfile,
};

use crate::{
    StoreError,
    catalogue::CatalogueRevision,
    places::Country,
    session_store::{SessionSummary, TimelineEntry},
    template_store::StoredTemplate,
};

/// The caller of a request: the record of a verified key.
pub type Caller = ApiKey;

/// The credentials of a request whose caller is not known yet.
#[derive(Clone)]
pub struct RequestCredentials {
    pub key: Option<Secret>,
    pub address: IpAddr,
    pub purpose: RequestPurpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPurpose {
    Any,
    /// Creating a session, which has a rate limit of its own.
    Creation,
}

/// The result of authenticating a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthOutcome {
    /// The rate limit window that partners see; `None` without a limit.
    pub window: Option<RateWindow>,
    pub result: Result<Caller, AccessDenied>,
    /// The record of the given key, also if the key is no longer valid; only for the log.
    pub key: Option<ApiKeyId>,
    /// The catalogue's revision when the key was looked up; `None` for a poll, or without a lookup.
    pub catalogue: Option<CatalogueRevision>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessDenied {
    /// The key is missing, unknown, revoked or expired.
    Unauthorized,
    TooMany {
        /// The delay in whole seconds.
        retry_after: i64,
    },
}

/// Authenticates requests, and counts them against rate limits.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Authenticates a request. A key that was rotated, revoked or expired before the call is
    /// refused.
    async fn authenticate(
        &self,
        credentials: RequestCredentials,
    ) -> Result<AuthOutcome, StoreError>;

    /// Authenticates a request that reads one session, and reads the session with the same lookup.
    /// Without an `id`, no session is found, at the same cost.
    async fn poll(
        &self,
        credentials: RequestCredentials,
        id: Option<SessionId>,
    ) -> Result<(AuthOutcome, Option<PolledSession>), StoreError>;
}

/// A polled session with its platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledSession {
    pub view: SessionView,
    /// `None` only if the catalogue no longer has the platform.
    pub platform: Option<PlatformSummary>,
}

/// A create request with an idempotency key: repeating it creates one session only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub key: String,
    /// The SHA-256 hash of the request.
    pub request: [u8; 32],
}

/// A session that was created, by this request or by the same one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedSession {
    pub view: SessionView,
    pub replayed: bool,
}

/// Sessions, as partners use them.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionService: Send + Sync {
    async fn create(
        &self,
        caller: &Caller,
        request: NewSession,
        idempotency: Option<IdempotentRequest>,
    ) -> Result<CreatedSession, CreateError>;

    async fn read(&self, caller: &Caller, id: SessionId) -> Result<SessionView, SessionError>;

    /// Returns the recording of a session that ended in ERROR, with a new link to it.
    async fn recording(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<RecordingView, SessionError>;

    /// Returns the timeline of a session, oldest entry first.
    async fn timeline(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Vec<TimelineEntry>, SessionError>;

    /// Returns a page of the caller's sessions, and their total number.
    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), SessionError>;

    /// Terminates a session. A closed session is not changed.
    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError>;

    /// Moves the time limits of up to [`MAX_SKIPPED_SESSIONS`] open sessions of the caller nearer, and
    /// returns their number. Refused for production keys.
    async fn skip_time(&self, caller: &Caller, by: SkippedTime) -> Result<usize, SessionError>;

    /// Compares data with the attestation of this hash.
    async fn compare(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError>;

    /// Returns the portable attestation of a session of the caller; `None` if the session has no
    /// attestation, or it was erased.
    async fn attestation(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError>;

    /// Sends the applicant the link of an open session again.
    async fn notify_again(&self, caller: &Caller, id: SessionId) -> Result<(), NotifyError>;

    /// Erases the data of the applicant. An open session is terminated first.
    async fn erase(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError>;
}

/// The sessions whose time limits one call moves.
pub const MAX_SKIPPED_SESSIONS: usize = 1000;

/// An attestation as a file that can be verified without this service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableAttestation {
    /// The hash of the attestation in the file.
    pub proof: ProofHash,
    /// CBOR, at most about 12 MiB; the same each time.
    pub file: Vec<u8>,
}

/// The result of comparing data with an attestation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    pub session: SessionId,
    /// Whether every attested field was given with its attested value. This makes no statement about
    /// given fields that are not attested.
    pub matches: bool,
    pub coverage: Coverage,
    pub fields: Vec<(String, FieldMatch)>,
}

/// How much of the given data a comparison covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Every given field is attested.
    AllGivenFields,
    /// Some of the given fields are not attested: nothing is known about their values.
    AttestedFieldsOnly,
}

/// The result of comparing one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldMatch {
    Matches,
    Differs,
    /// The field is attested but was not given.
    Missing,
    /// The field was given but is not attested.
    NotAttested,
}

/// The recording of a session, as its partner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingView {
    Pending,
    InProgress,
    /// A link to the recording.
    Completed(String),
    /// The reason why there is no recording.
    Failed(String),
}

/// A session with its URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub session: Session,
    pub embed_url: String,
    /// The URL with which the session can be observed for a short time, while a browser runs.
    pub stream_url: Option<String>,
}

/// A platform, with what partners may know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformListing {
    pub platform: Platform,
    /// That of the definition that new sessions run.
    pub profile: Option<PlatformProfile>,
    pub health: PlatformHealth,
}

/// How the runs of a platform ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformHealth {
    /// The runs that ended since then.
    pub since: DateTime<Utc>,
    /// By version.
    pub versions: Vec<(String, VersionHealth)>,
    /// What of the current version used to match and no longer does.
    pub drift: Vec<Drift>,
}

/// Whether a platform works, by the sessions of the last 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthState {
    Ok,
    /// The site seems to have changed.
    Changed,
    /// Too few sessions have ended to know.
    Unknown,
}

impl PlatformHealth {
    /// Returns whether the platform works whose new sessions run this version.
    #[must_use]
    pub fn state(&self, current: &str) -> HealthState {
        let is_known = |(version, health): &(String, VersionHealth)| {
            version == current && health.success_rate.is_some()
        };
        if !self.drift.is_empty() {
            HealthState::Changed
        } else if self.versions.iter().any(is_known) {
            HealthState::Ok
        } else {
            HealthState::Unknown
        }
    }
}

/// Looks up the options of a create request.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LookupService: Send + Sync {
    async fn platforms(&self, environment: Environment)
    -> Result<Vec<PlatformListing>, StoreError>;
    /// Returns the channels that are configured.
    fn channels(&self) -> &[Channel];
    /// Returns the approved templates of a team.
    async fn email_templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError>;
    fn countries(&self) -> &'static [Country];
    fn country(&self, code: &str) -> Option<&'static Country>;
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    #[error("Idempotency-Key was used before with another request")]
    OtherRequest,
    #[error("a request with this Idempotency-Key is being carried out")]
    InFlight,
    /// The team has reached the rate limit of links to this contact.
    #[error("the receiver was sent as many links as allowed for now")]
    TooManyLinks { retry_after: i64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the link is not sent again.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error("Session not found")]
    NotFound,
    #[error("the session was created without notificationPlatformId")]
    NoChannel,
    #[error("the session has ended")]
    Over,
    #[error("the link was sent as often as it may be")]
    NoMore,
    #[error("the link was sent a moment ago")]
    TooSoon {
        /// The delay in whole seconds.
        retry_after: i64,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("Session not found")]
    NotFound,
    #[error("the session is saved by too many at once")]
    Busy,
    #[error("the test clock is for development keys")]
    ProductionKey,
    #[error(transparent)]
    Store(#[from] StoreError),
}
