//! The verification session: its state machine, its events, and the effects of each transition.

mod effect;
mod event;
mod outcome;
mod progress;
mod state;
mod status;
mod transition;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

pub use self::{
    effect::{Effects, Job, Record, START_RETRY_DELAY},
    event::Event,
    outcome::{CancelReason, Collected, ExtractedData, IssuedAttestation, Outcome, ProofHash},
    progress::Progress,
    state::{
        ABSENCES_ALLOWED, AttestationStep, History, LOSSES_ALLOWED, Lease, MOVES_ALLOWED,
        PendingPrompt, Phase, Resume, SkippedTime, State,
    },
    status::{Status, UnknownStatus},
    transition::{InvalidTransition, Step, TransitionTerms, step},
};
use crate::{
    id::{ApiKeyId, BrowserId, SessionId},
    request::SessionTerms,
    worker_region::WorkerRegion,
};

/// The number of times that a session has been saved. It prevents lost updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl Version {
    pub const FIRST: Self = Self(1);

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The version of a platform's definition that a session runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionVersion {
    /// The semantic version, as the author wrote it.
    pub version: String,
    /// The SHA-256 hash of the definition as canonical JSON (RFC 8785), in hexadecimal digits.
    pub sha256: String,
}

/// The aggregate: the verification of one applicant on one platform for one partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub owner: ApiKeyId,
    pub terms: SessionTerms,
    pub state: State,
    pub progress: Progress,
    pub workflow: Option<DefinitionVersion>,
    pub version: Version,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    /// When everything about the applicant was erased.
    pub erased_at: Option<DateTime<Utc>>,
}

/// The result of a transition: the new session and the effects. Both are saved in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub session: Session,
    pub effects: Effects,
    /// The name of the event, for the session's timeline.
    pub event: &'static str,
    /// The workflow node at which the attempt failed.
    pub node: Option<String>,
    /// The time of the transition; its jobs are due from then on.
    pub at: DateTime<Utc>,
}

impl Session {
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status()
    }

    /// Returns the first change of a session, which creates it.
    #[must_use]
    pub fn opening(self) -> Change {
        let at = self.created_at;
        let records = self.terms.invitation.iter().map(|_| Record::SendLink).collect();
        let effects = Effects { records, ..Effects::default() };
        Change { session: self, effects, event: "SessionCreated", node: None, at }
    }

    /// Returns whether the recorded segments are kept, as far as is known yet.
    #[must_use]
    pub fn is_worth_recording(&self) -> bool {
        let failed = |outcome| matches!(outcome, &Outcome::Error { .. });
        self.erased_at.is_none() && self.state.outcome().is_none_or(failed)
    }

    /// Returns the region of the session's browser, or of the last one, and that of the terms if it had
    /// none. It is another one than that of the terms if that was full and the team allows others.
    #[must_use]
    pub fn region_in_use(&self) -> WorkerRegion {
        self.state.browser_region().unwrap_or(self.terms.worker_region)
    }

    /// Returns the data that the applicant agreed to share; `None` once it is erased.
    #[must_use]
    pub fn data(&self) -> Option<&ExtractedData> {
        let outcome = self.state.outcome().filter(|_| self.erased_at.is_none());
        outcome.and_then(Outcome::data)
    }

    /// Erases all data of the applicant and keeps the outcome of the session. `None` while the
    /// session is open, and if it is already erased.
    #[must_use]
    pub fn erase(&self, now: DateTime<Utc>) -> Option<Change> {
        let State::Closed { outcome, ran, region, attempts } = &self.state else { return None };
        if self.erased_at.is_some() {
            return None;
        }
        let outcome = outcome.clone().without_data();
        let state = State::Closed { outcome, ran: *ran, region: *region, attempts: *attempts };
        let session = Self {
            state,
            terms: SessionTerms {
                receiver: None,
                receiver_id: None,
                purpose: None,
                custom_url: None,
                ..self.terms.clone()
            },
            version: self.version.next(),
            erased_at: Some(now),
            ..self.clone()
        };
        let effects =
            Effects { jobs: vec![Job::ForgetRecording], records: vec![Record::EraseCopies] };
        Some(Change { session, effects, event: "DataErased", node: None, at: now })
    }

    /// Applies one event; `None` if there is nothing to save. From its expiry on, an open session
    /// expires, whatever the event and its origin.
    pub fn apply(
        &self,
        event: Event,
        now: DateTime<Utc>,
    ) -> Result<Option<Change>, InvalidTransition> {
        let skipped =
            if let Event::TimeSkipped { by } = event { by.span() } else { TimeDelta::zero() };
        let expires_at = self.expires_at - skipped;
        let expired = now >= expires_at && !self.state.is_closed();
        let offer = self.state.offered_retry();
        let event = if expired {
            Event::Expired
        } else if !skipped.is_zero() && offer.is_some_and(|(_, until)| now >= until - skipped) {
            Event::RetryExpired
        } else {
            event
        };
        let name = event.name();
        let node = match (&event, &self.state) {
            (_, State::Failed { node, .. }) | (Event::Failed { node, .. }, _) => node.clone(),
            _ => None,
        };
        let workflow = if let Event::WorkflowLoaded { workflow } = &event {
            Some(workflow.clone())
        } else {
            self.workflow.clone()
        };
        let Some(Step { state, effects }) = step((&self.terms).into(), &self.state, event)? else {
            return Ok(None);
        };
        let session = Self {
            closed_at: state.is_closed().then_some(now),
            progress: self.progress.after(&state),
            version: self.version.next(),
            state,
            workflow,
            expires_at,
            ..self.clone()
        };
        Ok(Some(Change { session, effects, event: name, node, at: now }))
    }

    /// Applies an event of a browser, as [`Session::apply`] does. The event is refused if the
    /// session now has another browser.
    pub fn apply_from(
        &self,
        browser: BrowserId,
        event: Event,
        now: DateTime<Utc>,
    ) -> Result<Option<Change>, InvalidTransition> {
        match self.state.lease() {
            Some(lease) if lease.browser == browser => self.apply(event, now),
            Some(_) => Err(InvalidTransition::NotItsBrowser),
            None if self.state.is_closed() => Err(InvalidTransition::AlreadyClosed(self.status())),
            None => Err(InvalidTransition::NotItsBrowser),
        }
    }
}

#[cfg(test)]
mod tests;
