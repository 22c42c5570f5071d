//! The states of a session, each with exactly the data that it has.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Collected, Outcome, Status};
use crate::{
    id::{BrowserId, InstanceId},
    workflow::PromptKind,
};

/// The number of browsers that a session may lose: the third loss ends it with an error.
pub const LOSSES_ALLOWED: u8 = 2;

/// A browser, by the identifier that the service chose, and the instance that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub browser: BrowserId,
    pub node: InstanceId,
}

/// The state of a session.
///
/// The identifier of a browser is chosen before it is started, and the browser runs from
/// [`State::Live`] on, so that "ready without a browser" cannot be represented. [`State::Closed`]
/// is terminal. `losses` counts the browsers that the session has lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Created {
        losses: u8,
    },
    Initializing {
        lease: Lease,
        losses: u8,
    },
    Live {
        lease: Lease,
        losses: u8,
        phase: Phase,
    },
    /// `ran` is the browser that ran when the session ended, if any.
    Closed {
        outcome: Outcome,
        ran: Option<BrowserId>,
    },
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
}

/// The phase in which a session continues once the applicant has acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    Running,
    CollectingData,
}

impl State {
    pub const START: Self = Self::Created { losses: 0 };

    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Created { .. } => Status::Created,
            Self::Initializing { .. } => Status::Initializing,
            Self::Live { phase, .. } => phase.status(),
            Self::Closed { outcome, .. } => outcome.status(),
        }
    }

    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Returns the browser that is starting or running.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Initializing { lease, .. } | Self::Live { lease, .. } => Some(*lease),
            Self::Created { .. } | Self::Closed { .. } => None,
        }
    }

    /// Returns whether a browser runs, or ran and was lost.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        match self {
            Self::Live { .. } => true,
            Self::Created { losses } | Self::Initializing { losses, .. } => *losses > 0,
            Self::Closed { .. } => false,
        }
    }

    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Closed { outcome, .. } => Some(outcome),
            Self::Created { .. } | Self::Initializing { .. } | Self::Live { .. } => None,
        }
    }

    /// Returns the action that the session waits for the applicant to take.
    #[must_use]
    pub const fn ask(&self) -> Option<&PendingPrompt> {
        match self {
            Self::Live { phase: Phase::AwaitingUser { ask, .. }, .. } => Some(ask),
            Self::Created { .. }
            | Self::Initializing { .. }
            | Self::Live { .. }
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
