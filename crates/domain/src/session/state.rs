//! What a session is right now, with exactly the data that state can have.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Collected, Outcome, Status};
use crate::{
    id::{BrowserId, InstanceId},
    workflow::PromptKind,
};

/// How many browsers a session may lose before it fails: the third loss ends it.
pub const LOSSES_ALLOWED: u8 = 2;

/// A browser under the name we gave it, and the process that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub browser: BrowserId,
    pub node: InstanceId,
}

/// Where a session stands.
///
/// A browser is named before it is started and lives from [`State::Live`] on, so "ready without
/// a browser" cannot be written down. Closed is for good. `losses` counts the browsers that were
/// lost on the way.
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
    /// `ran` is the browser that was up when the session ended, if one was.
    Closed {
        outcome: Outcome,
        ran: Option<BrowserId>,
    },
}

/// What is going on inside a leased browser.
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

/// How far what was collected is on its way to being attested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttestationStep {
    #[default]
    Asked,
    /// The witness has recorded what the platform's server answered.
    Recorded,
    /// What proves the recording to the witness is made; it examines it.
    Proved,
}

/// What the applicant is waited for, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPrompt {
    pub kind: PromptKind,
    /// The name of the text that tells the applicant what to do.
    pub text_key: String,
    pub deadline: DateTime<Utc>,
}

/// Where a session goes on once the applicant has acted.
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

    /// The browser that is starting or running.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Initializing { lease, .. } | Self::Live { lease, .. } => Some(*lease),
            Self::Created { .. } | Self::Closed { .. } => None,
        }
    }

    /// Whether a browser is up, or was and has been lost.
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

    /// What the applicant is being waited for, while that is so.
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
