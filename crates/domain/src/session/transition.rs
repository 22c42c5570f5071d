//! The transition function: the whole life of a session in one match.

use super::{
    AttestationStep, CancelReason, Collected, Effect, Event, IssuedAttestation, LOSSES_ALLOWED,
    Lease, Outcome, Phase, Resume, State, Status,
};
use crate::{error_code::ErrorCode, request::Attestation};

/// The new state and what it asks of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub state: State,
    pub effects: Vec<Effect>,
}

/// An event that this state has no place for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransition {
    #[error("the session is already {0}")]
    AlreadyClosed(Status),
    #[error("{event} cannot happen while {status}")]
    OutOfPlace { status: Status, event: &'static str },
    #[error("the news is of a browser that the session no longer has")]
    NotItsBrowser,
}

/// Moves a session by one event. Pure: same arguments, same answer.
///
/// `Ok(None)` is the one idempotent no-op: terminating what is closed.
pub fn step(
    attestation: Attestation,
    state: &State,
    event: Event,
) -> Result<Option<Step>, InvalidTransition> {
    let next = match (state, event) {
        (State::Closed { .. }, Event::TerminatedByPartner) => return Ok(None),
        (State::Closed { .. }, _) => return Err(InvalidTransition::AlreadyClosed(state.status())),

        // Endings that any open session can come to.
        (open, Event::TerminatedByPartner) => close(open, Outcome::Terminated),
        (open, Event::ApplicantCancelled) => {
            close(open, Outcome::Cancelled { why: CancelReason::Applicant })
        }
        (open, Event::Expired) => close(open, Outcome::Error { why: ErrorCode::SessionExpired }),
        (open, Event::Failed { why, .. }) => close(open, Outcome::Error { why }),

        // The way to a browser, and back when it is lost.
        (&State::Created { losses }, Event::BrowserRequested { lease }) => Step {
            state: State::Initializing { lease, losses },
            effects: vec![Effect::StartBrowser { lease }],
        },
        (&State::Initializing { lease, losses }, Event::BrowserStarted) => {
            Step { state: State::Live { lease, losses, phase: Phase::Ready }, effects: vec![] }
        }
        (
            &(State::Initializing { lease, losses } | State::Live { lease, losses, .. }),
            Event::BrowserLost,
        ) => lost(state, lease, losses),

        (&State::Live { lease, losses, ref phase }, event) => {
            let (status, name) = (state.status(), event.name());
            match inside(attestation, state, phase, event) {
                Some(Inside::Phase(phase)) => {
                    Step { state: State::Live { lease, losses, phase }, effects: vec![] }
                }
                Some(Inside::End(step)) => step,
                None => return Err(InvalidTransition::OutOfPlace { status, event: name }),
            }
        }

        (_, event) => {
            return Err(InvalidTransition::OutOfPlace {
                status: state.status(),
                event: event.name(),
            });
        }
    };
    Ok(Some(next))
}

/// A move while the browser is up: to another phase, or to the end.
enum Inside {
    Phase(Phase),
    End(Step),
}

fn inside(attestation: Attestation, state: &State, phase: &Phase, event: Event) -> Option<Inside> {
    let to = |phase| Some(Inside::Phase(phase));
    let end = |outcome| Some(Inside::End(close(state, outcome)));
    match (phase, event) {
        (Phase::Ready, Event::ApplicantConnected) => to(Phase::Connected),
        (Phase::Connected, Event::WorkflowOpened) => to(Phase::LoadingTree),
        (Phase::LoadingTree, Event::WorkflowLoaded { .. }) => to(Phase::Running),
        (Phase::Running, Event::InputNeeded { ask }) => {
            to(Phase::AwaitingUser { ask, then: Resume::Running })
        }
        (Phase::CollectingData, Event::InputNeeded { ask }) => {
            to(Phase::AwaitingUser { ask, then: Resume::CollectingData })
        }
        (Phase::AwaitingUser { then: Resume::Running, .. }, Event::InputGiven) => {
            to(Phase::Running)
        }
        (Phase::AwaitingUser { then: Resume::CollectingData, .. }, Event::InputGiven) => {
            to(Phase::CollectingData)
        }
        (Phase::AwaitingUser { .. }, Event::ConsentDeclined) => {
            end(Outcome::Cancelled { why: CancelReason::ConsentDeclined })
        }
        (Phase::Running, Event::CollectionStarted) => to(Phase::CollectingData),
        (Phase::CollectingData, Event::DataCollected { collected }) => match attestation {
            Attestation::Wanted => {
                to(Phase::Verifying { collected, step: AttestationStep::default() })
            }
            Attestation::NotWanted => end(reached(collected, None)),
        },
        (Phase::Verifying { collected, step }, Event::AttestationAdvanced { to: later })
            if later > *step =>
        {
            to(Phase::Verifying { collected: collected.clone(), step: later })
        }
        (Phase::Verifying { collected, .. }, Event::AttestationIssued { attestation }) => {
            end(reached(collected.clone(), Some(attestation)))
        }
        (Phase::Verifying { collected, .. }, Event::AttestationRefused) => {
            end(Outcome::PartialComplete {
                collected: collected.clone(),
                why: ErrorCode::AttestationFailed,
                attestation: None,
            })
        }
        _ => None,
    }
}

/// The goal, wholly or but for optional data.
fn reached(collected: Collected, attestation: Option<IssuedAttestation>) -> Outcome {
    if collected.missing.is_empty() {
        Outcome::Completed { data: collected.data, attestation }
    } else {
        Outcome::PartialComplete { collected, why: ErrorCode::DataIncomplete, attestation }
    }
}

fn lost(state: &State, lease: Lease, losses: u8) -> Step {
    if losses >= LOSSES_ALLOWED {
        return close(state, Outcome::Error { why: ErrorCode::BrowserLost });
    }
    Step {
        state: State::Created { losses: losses.saturating_add(1) },
        effects: vec![Effect::ReleaseBrowser { lease }],
    }
}

/// The only place that closes a session: one notice to the partner, no browser left behind, and no
/// recording but of an error.
fn close(open: &State, outcome: Outcome) -> Step {
    let mut effects: Vec<_> =
        open.lease().map(|lease| Effect::ReleaseBrowser { lease }).into_iter().collect();
    effects.push(Effect::NotifyPartner);
    effects.extend(open.has_run().then(|| {
        let failed = matches!(outcome, Outcome::Error { .. });
        if failed { Effect::KeepRecording } else { Effect::ForgetRecording }
    }));
    let ran = match *open {
        State::Live { lease, .. } => Some(lease.browser),
        State::Created { .. } | State::Initializing { .. } | State::Closed { .. } => None,
    };
    Step { state: State::Closed { outcome, ran }, effects }
}
