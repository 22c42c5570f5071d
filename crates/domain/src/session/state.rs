//! The states of a session, each with exactly the data that it has.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::{Collected, Outcome, Status};
use crate::{
    error_code::ErrorCode,
    id::{BrowserId, InstanceId},
    worker_region::WorkerRegion,
    workflow::PromptKind,
};

/// The number of browsers that a session may lose: the third loss ends it with an error.
pub const LOSSES_ALLOWED: u8 = 2;
/// How often in an attempt the place or the browser of an applicant who is away may be given back: the
/// next time ends the session with an error.
pub const ABSENCES_ALLOWED: u8 = 10;
/// How often a session that waits for a browser may be moved to another instance, until it has one.
pub const MOVES_ALLOWED: u8 = 10;

/// A browser, by the identifier that the service chose, and the instance that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub browser: BrowserId,
    pub node: InstanceId,
    /// The region of the instance; `None` where the deployment has no regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<WorkerRegion>,
}

/// What has gone wrong in a session that is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The browsers that the current attempt has lost.
    pub losses: u8,
    /// How often in the current attempt a browser, or the wait for one, was given back because the
    /// applicant was away.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub absences: u8,
    /// How often the wait for the current browser was moved to another instance.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moves: u8,
    /// Since when the session has waited for its browser, if the wait was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<DateTime<Utc>>,
    /// The region of the browser that has run last; `None` where the deployment has no regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<WorkerRegion>,
    /// The attempts that have failed.
    #[serde(default)]
    pub failed_attempts: u8,
    /// The time that the partner has skipped.
    #[serde(default, skip_serializing_if = "SkippedTime::is_zero")]
    pub skipped: SkippedTime,
}

impl History {
    /// Returns whether a browser was requested in the current attempt before, and was lost or given
    /// back.
    const fn has_begun(self) -> bool {
        self.losses > 0 || self.absences > 0
    }

    /// Returns the history of a session that does not wait for a browser.
    pub(super) const fn without_wait(self) -> Self {
        Self { moves: 0, waiting_since: None, ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u8) -> bool {
    *count == 0
}

/// A time that a partner skips: 0 seconds to 30 days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkippedTime(u32);

impl SkippedTime {
    pub const MAX_SECONDS: u32 = 30 * 24 * 3600;

    /// `None` for more than 30 days.
    #[must_use]
    pub const fn seconds(seconds: u32) -> Option<Self> {
        if seconds <= Self::MAX_SECONDS { Some(Self(seconds)) } else { None }
    }

    #[must_use]
    pub fn span(self) -> TimeDelta {
        TimeDelta::seconds(self.0.into())
    }

    /// Returns the sum, 30 days at most.
    pub(super) const fn and(self, other: Self) -> Self {
        let sum = self.0.saturating_add(other.0);
        Self(if sum > Self::MAX_SECONDS { Self::MAX_SECONDS } else { sum })
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

/// The state of a session.
///
/// The identifier of a browser is chosen before it is started, and the browser runs from
/// [`State::Live`] on, so that "ready without a browser" cannot be represented. [`State::Closed`]
/// is terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Created {
        #[serde(flatten)]
        history: History,
    },
    Initializing {
        lease: Lease,
        #[serde(flatten)]
        history: History,
    },
    Live {
        lease: Lease,
        #[serde(flatten)]
        history: History,
        phase: Phase,
    },
    /// An attempt has failed, and its browser is released. The applicant can start another attempt
    /// for as long as the lease is renewed, which happens while they are at the page.
    Failed {
        lease: Lease,
        #[serde(flatten)]
        history: History,
        why: ErrorCode,
        /// The workflow node at which the attempt failed.
        node: Option<String>,
        /// When the lease is renewed no longer.
        until: DateTime<Utc>,
    },
    /// `ran` is the browser that ran when the session ended, or when its last attempt failed, if any, and
    /// `region` where.
    Closed {
        outcome: Outcome,
        ran: Option<BrowserId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<WorkerRegion>,
        /// The attempts that were started. Sessions that ended before they were counted had one.
        #[serde(default = "one")]
        attempts: u8,
    },
}

const fn one() -> u8 {
    1
}

/// The phase of a session whose browser runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    Ready,
    Connected,
    LoadingTree,
    Running,
    AwaitingUser {
        ask: PendingPrompt,
        then: Resume,
    },
    CollectingData,
    Verifying {
        collected: Collected,
        #[serde(default)]
        step: AttestationStep,
    },
}

/// The progress of the attestation of the collected data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestationStep {
    #[default]
    Asked,
    /// The attestor has recorded the answer of the platform's server.
    Recorded,
    /// The proof of the recording is made, and the attestor verifies it.
    Proved,
}

/// The action that the session waits for the applicant to take, and its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPrompt {
    pub kind: PromptKind,
    /// The key of the text that tells the applicant what to do.
    pub text_key: String,
    pub deadline: DateTime<Utc>,
    /// Where the platform has sent a code, as `sms ***56`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The phase in which a session continues once the applicant has acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    Running,
    CollectingData,
}

impl State {
    pub const START: Self = Self::Created {
        history: History {
            losses: 0,
            absences: 0,
            moves: 0,
            waiting_since: None,
            region: None,
            failed_attempts: 0,
            skipped: SkippedTime(0),
        },
    };

    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Created { .. } => Status::Created,
            Self::Initializing { .. } => Status::Initializing,
            Self::Live { phase, .. } => phase.status(),
            Self::Failed { .. } => Status::AwaitingUser,
            Self::Closed { outcome, .. } => outcome.status(),
        }
    }

    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Returns the lease that has to be renewed for the session to stay open in this state: of the
    /// browser that is starting or running, or of the last one while another attempt is offered.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Initializing { lease, .. }
            | Self::Live { lease, .. }
            | Self::Failed { lease, .. } => Some(*lease),
            Self::Created { .. } | Self::Closed { .. } => None,
        }
    }

    /// Returns the region of the session's browser, or of the one that it waits for, or else of the last
    /// one; `None` if it had none, or the deployment has no regions.
    #[must_use]
    pub const fn browser_region(&self) -> Option<WorkerRegion> {
        match self {
            Self::Initializing { lease, .. }
            | Self::Live { lease, .. }
            | Self::Failed { lease, .. } => lease.region,
            Self::Closed { region, .. } => *region,
            Self::Created { history } => history.region,
        }
    }

    /// Returns since when the session has waited for a browser, if the wait was moved from another
    /// instance.
    #[must_use]
    pub const fn waiting_since(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Initializing { history, .. } => history.waiting_since,
            Self::Created { .. }
            | Self::Live { .. }
            | Self::Failed { .. }
            | Self::Closed { .. } => None,
        }
    }

    /// Returns whether a browser runs, or ran and was lost. One that an absent applicant has not seen
    /// shows nothing that is worth a recording.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        match self {
            Self::Live { .. } | Self::Failed { .. } => true,
            Self::Created { history } | Self::Initializing { history, .. } => {
                history.losses > 0 || history.failed_attempts > 0
            }
            Self::Closed { .. } => false,
        }
    }

    /// Returns the number of attempts that were started; `0` before the applicant has come.
    #[must_use]
    pub const fn attempts(&self) -> u8 {
        match self {
            Self::Created { history } if !history.has_begun() => history.failed_attempts,
            Self::Failed { history, .. } => history.failed_attempts,
            Self::Created { history }
            | Self::Initializing { history, .. }
            | Self::Live { history, .. } => history.failed_attempts.saturating_add(1),
            Self::Closed { attempts, .. } => *attempts,
        }
    }

    /// Returns the time that the partner has skipped since the session was created; 0 once it is closed.
    #[must_use]
    pub fn skipped(&self) -> SkippedTime {
        match self {
            Self::Created { history }
            | Self::Initializing { history, .. }
            | Self::Live { history, .. }
            | Self::Failed { history, .. } => history.skipped,
            Self::Closed { .. } => SkippedTime::default(),
        }
    }

    /// Returns an open state whose own time limits are nearer.
    pub(super) fn skip(&self, by: SkippedTime) -> Self {
        let mut state = self.clone();
        match &mut state {
            Self::Created { history } | Self::Initializing { history, .. } => {
                history.skipped = history.skipped.and(by);
            }
            Self::Live { history, phase, .. } => {
                history.skipped = history.skipped.and(by);
                if let Phase::AwaitingUser { ask, .. } = phase {
                    ask.deadline -= by.span();
                }
            }
            Self::Failed { history, until, .. } => {
                history.skipped = history.skipped.and(by);
                *until -= by.span();
            }
            Self::Closed { .. } => (),
        }
        state
    }

    /// Returns why the last attempt failed, and until when another one is offered.
    #[must_use]
    pub const fn offered_retry(&self) -> Option<(ErrorCode, DateTime<Utc>)> {
        match self {
            Self::Failed { why, until, .. } => Some((*why, *until)),
            Self::Created { .. }
            | Self::Initializing { .. }
            | Self::Live { .. }
            | Self::Closed { .. } => None,
        }
    }

    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Closed { outcome, .. } => Some(outcome),
            Self::Created { .. }
            | Self::Initializing { .. }
            | Self::Live { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Returns the error code with which the session ended, or its last attempt failed.
    #[must_use]
    pub fn error_code(&self) -> Option<ErrorCode> {
        let offered = self.offered_retry().map(|(why, _)| why);
        offered.or_else(|| self.outcome().and_then(Outcome::error_code))
    }

    /// Returns the action that the session waits for the applicant to take.
    #[must_use]
    pub const fn ask(&self) -> Option<&PendingPrompt> {
        match self {
            Self::Live { phase: Phase::AwaitingUser { ask, .. }, .. } => Some(ask),
            Self::Created { .. }
            | Self::Initializing { .. }
            | Self::Live { .. }
            | Self::Failed { .. }
            | Self::Closed { .. } => None,
        }
    }
}

impl Phase {
    const fn status(&self) -> Status {
        match self {
            Self::Ready => Status::Ready,
            Self::Connected => Status::Connected,
            Self::LoadingTree => Status::LoadingTree,
            Self::Running => Status::Running,
            Self::AwaitingUser { .. } => Status::AwaitingUser,
            Self::CollectingData => Status::CollectingData,
            Self::Verifying { .. } => Status::Verifying,
        }
    }
}
