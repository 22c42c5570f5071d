//! The partner's side of the service.

use std::net::IpAddr;

use async_trait::async_trait;
use domain::{
    api_key::{ApiKey, Environment},
    id::{ApiKeyId, SessionId, TeamId},
    notification::Channel,
    platform::{Platform, PlatformSummary},
    rate::RateWindow,
    request::{GivenData, InvalidRequest, ListQuery, NewSession},
    secret::Secret,
    session::{ProofHash, Session},
};

use crate::{
    StoreError,
    catalogue::CatalogueRevision,
    places::Country,
    session_store::{SessionSummary, TimelineEntry},
    template_store::StoredTemplate,
};

/// Who makes a request: a key that was checked.
pub type Caller = ApiKey;

/// A request before it is known whose it is.
#[derive(Clone)]
pub struct RequestCredentials {
    pub key: Option<Secret>,
    pub address: IpAddr,
    pub purpose: RequestPurpose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPurpose {
    Any,
    /// To create a session, which has a limit of its own.
    Creation,
}

/// Whether a request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthOutcome {
    /// The limit that partners are told of; none where there is none.
    pub window: Option<RateWindow>,
    pub verdict: Result<Caller, AccessDenied>,
    /// The record of the key that was shown, where it opens nothing any more too; for the log alone.
    pub key: Option<ApiKeyId>,
    /// The catalogue's revision when the key was looked at; none where a poll looked, or nobody.
    pub catalogue: Option<CatalogueRevision>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessDenied {
    /// The key is missing, unknown, revoked or expired.
    Unauthorized,
    TooMany {
        /// Whole seconds.
        retry_after: i64,
    },
}

/// Finds out whose a request is, and counts it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Admits a request or refuses it. A key that was rotated, revoked or expired before the call
    /// is refused.
    async fn authenticate(&self, knock: RequestCredentials) -> Result<AuthOutcome, StoreError>;

    /// Admits a request that only reads one session, and reads it with the same look at the
    /// store. An `id` that is none finds nothing, at the same cost.
    async fn poll(
        &self,
        knock: RequestCredentials,
        id: Option<SessionId>,
    ) -> Result<(AuthOutcome, Option<PolledSession>), StoreError>;
}

/// A polled session, with the platform it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledSession {
    pub face: SessionView,
    /// Absent only where the catalogue lost it.
    pub platform: Option<PlatformSummary>,
}

/// Says that a creation is to happen once, however often it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub key: String,
    /// SHA-256 of the request.
    pub request: [u8; 32],
}

/// A session that was created, now or by the same request before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedSession {
    pub face: SessionView,
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
        once: Option<IdempotentRequest>,
    ) -> Result<CreatedSession, CreateError>;

    async fn read(&self, caller: &Caller, id: SessionId) -> Result<SessionView, SessionError>;

    /// The recording of a session that ended in ERROR, with a fresh link to it.
    async fn recording(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<RecordingView, SessionError>;

    /// What happened to a session, oldest first.
    async fn timeline(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Vec<TimelineEntry>, SessionError>;

    /// A part of the caller's sessions, and how many there are in all.
    async fn list(
        &self,
        caller: &Caller,
        query: ListQuery,
    ) -> Result<(Vec<SessionSummary>, i64), SessionError>;

    /// Ends a session early. A session that has ended already is left alone.
    async fn terminate(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError>;

    /// Compares data with what the attestation of this hash holds.
    async fn compare(
        &self,
        caller: &Caller,
        proof: &ProofHash,
        data: &GivenData,
    ) -> Result<Comparison, SessionError>;

    /// The portable attestation of a session of the caller's; none where the session has no
    /// attestation, or it was erased.
    async fn attestation(
        &self,
        caller: &Caller,
        id: SessionId,
    ) -> Result<Option<PortableAttestation>, SessionError>;

    /// Sends the applicant the link of an open session once more.
    async fn notify_again(&self, caller: &Caller, id: SessionId) -> Result<(), NotifyError>;

    /// Erases what is known about the applicant. An open session is terminated first.
    async fn erase(&self, caller: &Caller, id: SessionId) -> Result<Session, SessionError>;
}

/// An attestation as a file that can be verified without this service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableAttestation {
    /// Names the attestation that the file is of.
    pub proof: ProofHash,
    /// CBOR, at most about 12 MiB; the same each time.
    pub file: Vec<u8>,
}

/// What came of comparing data with an attestation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    pub session: SessionId,
    /// Whether every attested field was given with its attested value. Says nothing about given
    /// fields that are not attested.
    pub matches: bool,
    pub coverage: Coverage,
    pub fields: Vec<(String, FieldMatch)>,
}

/// How much of the given data a comparison can speak for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Every field that was given is attested.
    AllGivenFields,
    /// Some of the given fields are not attested: nothing is known of their values.
    AttestedFieldsOnly,
}

/// How a field compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldMatch {
    Matches,
    Differs,
    /// Attested, and not given.
    Missing,
    /// Given, and not attested.
    NotAttested,
}

/// How far a recording has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingView {
    Pending,
    InProgress,
    /// A link to the film.
    Completed(String),
    /// There is none, and why.
    Failed(String),
}

/// A session with the addresses that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    pub session: Session,
    pub embed_url: String,
    /// Where the session can be watched for a short time, while a browser runs.
    pub stream_url: Option<String>,
}

/// What a partner may choose from.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LookupService: Send + Sync {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError>;
    /// Those over which links can be sent here.
    fn channels(&self) -> &[Channel];
    /// A team's approved ones.
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
    /// The team has sent this receiver as many links as it may for now.
    #[error("the receiver was sent as many links as allowed for now")]
    TooManyLinks { retry_after: i64 },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a link is not sent again.
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
        /// Whole seconds.
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
    #[error(transparent)]
    Store(#[from] StoreError),
}
