//! The service for a team's sessions in the portal.

use std::time::Duration;

use async_trait::async_trait;
use chrono::NaiveDate;
use domain::{
    api_key::Environment,
    fairness::Quotas,
    id::PlatformId,
    id::SessionId,
    rate::RateLimit,
    session::{Session, Status},
};

use super::{
    super::{PortableAttestation, RecordingView},
    PortalError, SignedInUser,
};
use crate::session_store::{ListedSession, SessionCursor, SessionFilter, TimelineEntry};

/// Reads and terminates the sessions of all keys of a team. Data of applicants is not shown.
#[async_trait]
pub trait TeamSessionService: Send + Sync {
    /// Returns a page of the team's sessions that match, as
    /// [`TeamSessionQueries`](crate::session_store::TeamSessionQueries) does.
    async fn team_sessions(
        &self,
        user: &SignedInUser,
        search: SessionSearch,
    ) -> Result<TeamSessionList, PortalError>;

    /// Returns the numbers and names of the platforms that sessions can be for.
    async fn platforms(
        &self,
        user: &SignedInUser,
    ) -> Result<Vec<(PlatformId, String)>, PortalError>;

    /// Returns statistics of the team's recent sessions of an environment; without one, of
    /// production if the team has a key for it, otherwise of development.
    async fn overview(
        &self,
        user: &SignedInUser,
        range: OverviewRange,
        environment: Option<Environment>,
    ) -> Result<Overview, PortalError>;

    /// Returns the team's quotas and their use in this process.
    async fn quotas(&self, user: &SignedInUser) -> Result<TeamQuotas, PortalError>;

    async fn team_session(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<SessionDetails, PortalError>;

    /// Returns the portable attestation of a session, which contains the applicant's attested data.
    async fn team_attestation(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<PortableAttestation, PortalError>;

    /// Terminates a session. A closed session is not changed.
    async fn end_session(&self, user: &SignedInUser, id: SessionId) -> Result<(), PortalError>;
}

/// A search for sessions of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSearch {
    pub filter: SessionFilter,
    pub after: Option<SessionCursor>,
    /// The maximum number of sessions in the answer.
    pub limit: u16,
}

/// A page of a team's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSessionList {
    pub sessions: Vec<TeamSession>,
    /// Where the next page begins; `None` at the end of the list.
    pub next: Option<SessionCursor>,
}

/// A session in a team's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSession {
    pub listed: ListedSession,
    /// The name of the platform, as applicants know it.
    pub platform: String,
    /// The label of the key that the session was created with.
    pub key: String,
}

/// A session with its timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDetails {
    pub session: Session,
    pub platform: String,
    pub key: String,
    /// The timeline, oldest entry first.
    pub timeline: Vec<TimelineEntry>,
    /// `None` if the session has no recording.
    pub recording: Option<RecordingView>,
    /// The code that the applicant reads at the end, by which the support recognizes the session.
    pub support_reference: String,
}

/// The quotas of a team and their use; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamQuotas {
    /// The limit of requests with each key.
    pub requests: Option<RateLimit>,
    /// The limit of sessions created with each key.
    pub creations: Option<RateLimit>,
    /// The limit of sessions created with all keys together.
    pub team_creations: Option<RateLimit>,
    /// The limit of links to one address or number.
    pub recipient: Option<RateLimit>,
    /// The quotas of browsers in each process.
    pub browsers: Quotas,
    /// The number of sessions that have a browser of this process.
    pub running: usize,
    /// The number of sessions that wait for a browser of this process.
    pub waiting: usize,
}

/// The period of an overview, which ends today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverviewRange {
    SevenDays,
    ThirtyDays,
    NinetyDays,
}

impl OverviewRange {
    pub const ALL: [Self; 3] = [Self::SevenDays, Self::ThirtyDays, Self::NinetyDays];

    /// Returns the number of days, today among them.
    #[must_use]
    pub const fn days(self) -> u16 {
        match self {
            Self::SevenDays => 7,
            Self::ThirtyDays => 30,
            Self::NinetyDays => 90,
        }
    }
}

/// Statistics of a team's recent sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    pub environment: Environment,
    /// The days of the period, the oldest first.
    pub days: Vec<DailyCounts>,
    pub created: usize,
    pub completed: usize,
    /// The number of closed sessions, with any outcome.
    pub ended: usize,
    /// The time from creation to completion that half of the completed sessions did not exceed.
    pub p50: Option<Duration>,
    /// The time from creation to completion that 95 % of the completed sessions did not exceed.
    pub p95: Option<Duration>,
    /// How many sessions reached each step, in their order.
    pub funnel: Vec<(FunnelStep, usize)>,
    /// The error codes of sessions that ended without completion, the most frequent first.
    pub failures: Vec<FailureCount>,
    /// The platforms with sessions that ended, those with the most failures first.
    pub platforms: Vec<PlatformOutcomes>,
    /// The workflow nodes at which sessions failed, the most frequent first.
    pub nodes: Vec<FailingNode>,
    /// Whether the period has more sessions than were counted.
    pub cut: bool,
}

/// A step of a session towards its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunnelStep {
    Created,
    /// The applicant has begun.
    Started,
    /// The applicant sees the platform's page.
    Connected,
    /// The applicant has signed in, and data is collected.
    SignedIn,
    /// The session is completed, or partially completed.
    Completed,
}

/// An error code, and the number of sessions that ended with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCount {
    /// `None` for sessions that ended without a code, such as terminated ones.
    pub code: Option<String>,
    pub count: usize,
}

/// What came of a platform's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformOutcomes {
    pub platform: PlatformId,
    /// The name of the platform, as applicants know it.
    pub name: String,
    /// The number of closed sessions, with any outcome.
    pub ended: usize,
    /// The number of closed sessions that are not completed.
    pub failed: usize,
}

/// A workflow node at which sessions failed, and their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingNode {
    pub id: PlatformId,
    /// The name of the platform in the catalogue.
    pub platform: String,
    pub node: String,
    /// The error code; each code is counted separately.
    pub why: String,
    pub count: usize,
}

/// The numbers of sessions by status for a day (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyCounts {
    pub date: NaiveDate,
    pub counts: Vec<(Status, usize)>,
}
