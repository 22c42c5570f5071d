//! A team's sessions, as the portal shows and ends them.

use std::time::Duration;

use async_trait::async_trait;
use chrono::NaiveDate;
use domain::{
    fairness::Quotas,
    id::SessionId,
    rate::RateLimit,
    request::ListQuery,
    session::{Session, Status},
};

use super::{
    super::{PortableAttestation, RecordingView},
    PortalError, SignedInUser,
};
use crate::session_store::{SessionSummary, TimelineEntry};

/// The sessions of all of a team's keys. What their applicants are is not shown.
#[async_trait]
pub trait TeamSessionService: Send + Sync {
    /// Where a reference is given: those that the team calls so.
    async fn team_sessions(
        &self,
        visitor: &SignedInUser,
        query: ListQuery,
        reference: Option<String>,
    ) -> Result<Vec<TeamSession>, PortalError>;

    /// What came of the sessions of the last 30 days.
    async fn overview(&self, visitor: &SignedInUser) -> Result<Overview, PortalError>;

    /// What the team may have, and what it has of it in this process.
    async fn quotas(&self, visitor: &SignedInUser) -> Result<TeamQuotas, PortalError>;

    async fn team_session(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<SessionDetails, PortalError>;

    /// The portable attestation of a session. It has the applicant's attested data in it.
    async fn team_attestation(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<PortableAttestation, PortalError>;

    /// Ends a session early. One that has ended already is left alone.
    async fn end_session(&self, visitor: &SignedInUser, id: SessionId) -> Result<(), PortalError>;
}

/// A session in a team's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSession {
    pub summary: SessionSummary,
    /// The platform, as applicants know it.
    pub platform: String,
    /// What its team calls the key that it was created with.
    pub key: String,
}

/// A session and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDetails {
    pub session: Session,
    pub platform: String,
    pub key: String,
    /// Oldest first.
    pub timeline: Vec<TimelineEntry>,
    /// None where none was to be made.
    pub recording: Option<RecordingView>,
}

/// What a team may have; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamQuotas {
    /// Of each key.
    pub requests: Option<RateLimit>,
    /// Sessions created with each key.
    pub creations: Option<RateLimit>,
    /// Sessions created with all keys together.
    pub team_creations: Option<RateLimit>,
    /// Links to one address or number.
    pub recipient: Option<RateLimit>,
    /// Of each process.
    pub browsers: Quotas,
    /// Sessions that have a browser of this process.
    pub running: usize,
    /// Sessions that wait for one.
    pub waiting: usize,
}

/// What came of a team's sessions lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// Each day of the time, the oldest first.
    pub days: Vec<DailyCounts>,
    pub created: usize,
    pub completed: usize,
    /// Those that ended, in whatever way.
    pub ended: usize,
    /// From creation to completion.
    pub median: Option<Duration>,
    /// Why sessions did not come to their goal, the most frequent first.
    pub failures: Vec<(String, usize)>,
    /// The nodes of workflows at which sessions failed, the most frequent first.
    pub nodes: Vec<FailingNode>,
    /// Whether there were more sessions than were looked at.
    pub cut: bool,
}

/// Where sessions failed, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingNode {
    /// As its catalogue calls the platform.
    pub platform: String,
    pub node: String,
    /// The error code; another one counts apart.
    pub why: String,
    pub count: usize,
}

/// A day (UTC), and how many sessions of it have which status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyCounts {
    pub date: NaiveDate,
    pub counts: Vec<(Status, usize)>,
}
