//! The transition function: the life cycle of a session in one match.

use chrono::{DateTime, Utc};

use super::{
    ABSENCES_ALLOWED, AttestationStep, CancelReason, Collected, Effects, Event, History,
    IssuedAttestation, Job, LOSSES_ALLOWED, Lease, MOVES_ALLOWED, Outcome, PendingPrompt, Phase,
    Record, Resume, State, Status,
};
use crate::{
    error_code::{ErrorCode, Retry},
    request::{AttestationRequest, MaxAttempts, SessionTerms},
};

/// The terms of a session on which its transitions depend.
#[derive(Debug, Clone, Copy)]
pub struct TransitionTerms {
    pub attestation: AttestationRequest,
    pub max_attempts: MaxAttempts,
}

impl From<&SessionTerms> for TransitionTerms {
    fn from(terms: &SessionTerms) -> Self {
        Self { attestation: terms.attestation, max_attempts: terms.max_attempts }
    }
}

/// The new state and the effects of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub state: State,
    pub effects: Effects,
}

/// An event that is not allowed in the current state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransition {
    #[error("the session is already {0}")]
    AlreadyClosed(Status),
    #[error("{event} cannot happen while {status}")]
    OutOfPlace { status: Status, event: &'static str },
    #[error("the event is of a browser that the session no longer has")]
    NotItsBrowser,
}

/// Computes the transition for one event. The function is pure: the same arguments give the same
/// result.
///
/// `Ok(None)` is returned only for the idempotent no-op of terminating a closed session.
pub fn step(
    terms: TransitionTerms,
    state: &State,
    event: Event,
) -> Result<Option<Step>, InvalidTransition> {
    let next = match (state, event) {
        (State::Closed { .. }, Event::TerminatedByPartner) => return Ok(None),
        (State::Closed { .. }, _) => return Err(InvalidTransition::AlreadyClosed(state.status())),

        // Any open session can end in these ways.
        (open, Event::TerminatedByPartner) => close(open, Outcome::Terminated),

        (open, Event::TimeSkipped { by }) => {
            Step { state: open.skip(by), effects: Effects::default() }
        }

        // Another attempt is offered: it begins, or the session ends as the last one did.
        (&State::Failed { history, .. }, Event::RetryRequested) => Step {
            state: State::Created {
                history: History { losses: 0, absences: 0, ..history.without_wait() },
            },
            effects: Effects::default(),
        },
        (
            &State::Failed { why, .. },
            Event::RetryDeclined
            | Event::RetryExpired
            | Event::ApplicantCancelled
            | Event::Expired
            | Event::Failed { .. },
        ) => close(state, Outcome::Error { why }),

        (open, Event::ApplicantCancelled) => {
            close(open, Outcome::Cancelled { why: CancelReason::Applicant })
        }
        (open, Event::Expired) => close(open, Outcome::Error { why: ErrorCode::SessionExpired }),
        (open, Event::Failed { why, node, retry_until }) => {
            failed(terms, open, why, node, retry_until)
        }

        // A browser is requested and started, or lost.
        (&State::Created { history }, Event::BrowserRequested { lease }) => Step {
            state: State::Initializing { lease, history },
            effects: Effects::job(Job::StartBrowser { lease }),
        },
        (&State::Initializing { lease, history }, Event::BrowserStarted) => Step {
            state: State::Live {
                lease,
                history: History { region: lease.region, ..history.without_wait() },
                phase: Phase::Ready,
            },
            effects: Effects::default(),
        },
        (&State::Initializing { lease, history }, Event::WaitMoved { to, since })
            if history.moves < MOVES_ALLOWED && lease.node != to.node =>
        {
            moved(lease, history, (to, since))
        }
        // It counts as a loss, so that a session cannot be handed over without end.
        (&State::Initializing { lease, history }, Event::StartWithdrawn) => {
            lost(state, lease, history)
        }
        (
            &(State::Initializing { lease, history }
            | State::Live { lease, history, phase: Phase::Ready }),
            Event::ApplicantAbsent,
        ) => absent(state, lease, history),
        (
            &(State::Initializing { lease, history } | State::Live { lease, history, .. }),
            Event::BrowserLost,
        ) => lost(state, lease, history),

        (&State::Live { lease, history, ref phase }, event) => {
            let (status, name) = (state.status(), event.name());
            match live_transition(terms.attestation, state, phase, event) {
                Some(LiveTransition::Phase(phase)) => Step {
                    state: State::Live { lease, history, phase },
                    effects: Effects::default(),
                },
                Some(LiveTransition::End(step)) => step,
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

/// A transition of a live session: to another phase, or to the end.
enum LiveTransition {
    Phase(Phase),
    End(Step),
}

fn live_transition(
    attestation: AttestationRequest,
    state: &State,
    phase: &Phase,
    event: Event,
) -> Option<LiveTransition> {
    let to = |phase| Some(LiveTransition::Phase(phase));
    let end = |outcome| Some(LiveTransition::End(close(state, outcome)));
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
        (Phase::AwaitingUser { ask, then }, Event::DeadlineChanged { deadline, hint }) => {
            let ask = PendingPrompt { deadline, hint, ..ask.clone() };
            to(Phase::AwaitingUser { ask, then: *then })
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
            AttestationRequest::Wanted => {
                to(Phase::Verifying { collected, step: AttestationStep::default() })
            }
            AttestationRequest::NotWanted => end(completed(collected, None)),
        },
        (Phase::Verifying { collected, step }, Event::AttestationAdvanced { to: later })
            if later > *step =>
        {
            to(Phase::Verifying { collected: collected.clone(), step: later })
        }
        (Phase::Verifying { collected, .. }, Event::AttestationIssued { attestation }) => {
            end(completed(collected.clone(), Some(attestation)))
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

/// Returns the outcome of a session that reached its goal, with or without all optional data.
fn completed(collected: Collected, attestation: Option<IssuedAttestation>) -> Outcome {
    if collected.missing.is_empty() {
        Outcome::Completed { data: collected.data, attestation }
    } else {
        Outcome::PartialComplete { collected, why: ErrorCode::DataIncomplete, attestation }
    }
}

fn lost(state: &State, lease: Lease, history: History) -> Step {
    if history.losses >= LOSSES_ALLOWED {
        return close(state, Outcome::Error { why: ErrorCode::BrowserLost });
    }
    let losses = history.losses.saturating_add(1);
    Step {
        state: State::Created { history: History { losses, ..history } },
        effects: Effects::job(Job::ReleaseBrowser { lease }),
    }
}

/// Waits at another instance, in the same place. The earlier one releases what it may have begun.
fn moved(from: Lease, history: History, (to, since): (Lease, DateTime<Utc>)) -> Step {
    let moves = history.moves.saturating_add(1);
    let mut effects = Effects::job(Job::StartBrowser { lease: to });
    effects.jobs.push(Job::ReleaseBrowser { lease: from });
    Step {
        state: State::Initializing {
            lease: to,
            history: History { moves, waiting_since: Some(since), ..history },
        },
        effects,
    }
}

/// Gives back what an applicant who is away does not use. It counts, so that no session requests browsers
/// without end.
fn absent(state: &State, lease: Lease, history: History) -> Step {
    if history.absences >= ABSENCES_ALLOWED {
        return close(state, Outcome::Error { why: ErrorCode::UserInputTimeout });
    }
    let absences = history.absences.saturating_add(1);
    Step {
        state: State::Created { history: History { absences, ..history.without_wait() } },
        effects: Effects::job(Job::ReleaseBrowser { lease }),
    }
}

/// Offers another attempt if it may succeed, the applicant is there to decide, and attempts are left.
/// Otherwise the session ends.
fn failed(
    terms: TransitionTerms,
    open: &State,
    why: ErrorCode,
    node: Option<String>,
    retry_until: Option<DateTime<Utc>>,
) -> Step {
    let failed_attempts = open.attempts();
    let is_useful = why.retry() == Retry::Worthwhile && failed_attempts < terms.max_attempts.get();
    match (open, retry_until.filter(|_| is_useful)) {
        (
            &(State::Initializing { lease, history } | State::Live { lease, history, .. }),
            Some(until),
        ) => {
            let history = History { failed_attempts, ..history };
            Step {
                state: State::Failed { lease, history, why, node, until },
                effects: Effects::job(Job::ReleaseBrowser { lease }),
            }
        }
        _ => close(open, Outcome::Error { why }),
    }
}

/// Closes a session. No other function does: here it is ensured that the partner is notified once,
/// that the browser is released, and that only the recording of an error is kept.
fn close(open: &State, outcome: Outcome) -> Step {
    let mut effects = Effects::default();
    // The browser of a failed attempt is released already.
    let running = open.lease().filter(|_| open.offered_retry().is_none());
    effects.jobs.extend(running.map(|lease| Job::ReleaseBrowser { lease }));
    effects.records.push(Record::NotifyPartner);
    if open.has_run() {
        if matches!(outcome, Outcome::Error { .. }) {
            effects.records.push(Record::KeepRecording);
        } else {
            effects.jobs.push(Job::ForgetRecording);
        }
    }
    let ran = match *open {
        State::Live { lease, .. } | State::Failed { lease, .. } => Some(lease.browser),
        State::Created { .. } | State::Initializing { .. } | State::Closed { .. } => None,
    };
    let region = match open {
        // No browser has run there.
        State::Initializing { history, .. } => history.region,
        State::Created { .. }
        | State::Live { .. }
        | State::Failed { .. }
        | State::Closed { .. } => open.browser_region(),
    };
    let attempts = open.attempts();
    Step { state: State::Closed { outcome, ran, region, attempts }, effects }
}
