//! The progress of a session, as partners see it.

use serde::{Deserialize, Serialize};

use super::{AttestationStep, Outcome, Phase, Resume, State};

/// An integer from 0 to 100 that never decreases; 100 only if the session reached its goal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Progress(u8);

impl Progress {
    /// Returns `None` if the number is out of range.
    #[must_use]
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }

    #[must_use]
    pub const fn percent(self) -> u8 {
        self.0
    }

    pub(super) fn after(self, state: &State) -> Self {
        self.max(Self(percent_of(state)))
    }
}

const fn percent_of(state: &State) -> u8 {
    match state {
        State::Created { .. } | State::Failed { .. } => 0,
        State::Initializing { .. } => 5,
        State::Live { phase, .. } => match phase {
            Phase::Ready => 10,
            Phase::Connected => 15,
            Phase::LoadingTree => 20,
            Phase::Running => 25,
            Phase::AwaitingUser { then: Resume::Running, .. } => 40,
            Phase::CollectingData => 60,
            Phase::AwaitingUser { then: Resume::CollectingData, .. } => 75,
            Phase::Verifying { step: AttestationStep::Asked, .. } => 85,
            Phase::Verifying { step: AttestationStep::Recorded, .. } => 90,
            Phase::Verifying { step: AttestationStep::Proved, .. } => 95,
        },
        State::Closed { outcome, .. } => match outcome {
            Outcome::Completed { .. } | Outcome::PartialComplete { .. } => 100,
            Outcome::Error { .. } | Outcome::Cancelled { .. } | Outcome::Terminated => 0,
        },
    }
}
