//! A verification session: its state, what moves it, what each move asks for.

mod effect;
mod event;
mod outcome;
mod progress;
mod state;
mod status;
mod transition;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use self::{
    effect::Effect,
    event::Event,
    outcome::{CancelReason, Collected, ExtractedData, IssuedAttestation, Outcome, ProofHash},
    progress::Progress,
    state::{AttestationStep, LOSSES_ALLOWED, Lease, PendingPrompt, Phase, Resume, State},
    status::{Status, UnknownStatus},
    transition::{InvalidTransition, Step, step},
};
use crate::{
    id::{ApiKeyId, BrowserId, SessionId},
    request::SessionTerms,
};

/// How many times a session has been saved; the guard against lost updates.
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
    /// Semantic version, as its author wrote it.
    pub version: String,
    /// SHA-256 of the definition as compact JSON with sorted members, in hexadecimal digits.
    pub sha256: String,
}

/// The aggregate: one applicant proving one account to one partner.
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

/// A session moved on, and what the world owes for it. Saved as one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub session: Session,
    pub effects: Vec<Effect>,
    /// What happened, for the session's timeline.
    pub event: &'static str,
    /// The workflow's node at which it failed.
    pub node: Option<String>,
    /// When it moved; from then on the effects are due.
    pub at: DateTime<Utc>,
}

impl Session {
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status()
    }

    /// The first change of a session, which brings it into being.
    #[must_use]
    pub fn opening(self) -> Change {
        let at = self.created_at;
        let effects = self.terms.invitation.iter().map(|_| Effect::SendLink).collect();
        Change { session: self, effects, event: "SessionCreated", node: None, at }
    }

    /// Whether what its browsers showed is to be kept, as far as is known.
    #[must_use]
    pub fn is_worth_recording(&self) -> bool {
        let failed = |outcome| matches!(outcome, &Outcome::Error { .. });
        self.erased_at.is_none() && self.state.outcome().is_none_or(failed)
    }

    /// What the applicant agreed to share, until it is erased.
    #[must_use]
    pub fn data(&self) -> Option<&ExtractedData> {
        let kept = self.state.outcome().filter(|_| self.erased_at.is_none());
        kept.and_then(Outcome::data)
    }

    /// Erases what is known about the applicant, and leaves how the session went. `None` while the
    /// session is open, and where it is done already.
    #[must_use]
    pub fn erase(&self, now: DateTime<Utc>) -> Option<Change> {
        let State::Closed { outcome, ran } = &self.state else { return None };
        if self.erased_at.is_some() {
            return None;
        }
        let state = State::Closed { outcome: outcome.clone().without_data(), ran: *ran };
        let session = Self {
            state,
            terms: SessionTerms { receiver: None, receiver_id: None, ..self.terms.clone() },
            version: self.version.next(),
            erased_at: Some(now),
            ..self.clone()
        };
        let effects = vec![Effect::EraseCopies, Effect::ForgetRecording];
        Some(Change { session, effects, event: "DataErased", node: None, at: now })
    }

    /// Moves the session by one event; `None` when there is nothing to save. Once its time is
    /// over, an open session has expired, whatever the news and whoever brings them first.
    pub fn apply(
        &self,
        event: Event,
        now: DateTime<Utc>,
    ) -> Result<Option<Change>, InvalidTransition> {
        let over = now >= self.expires_at && !self.state.is_closed();
        let event = if over { Event::Expired } else { event };
        let name = event.name();
        let node = if let Event::Failed { node, .. } = &event { node.clone() } else { None };
        let workflow = if let Event::WorkflowLoaded { workflow } = &event {
            Some(workflow.clone())
        } else {
            self.workflow.clone()
        };
        let Some(Step { state, effects }) = step(self.terms.attestation, &self.state, event)?
        else {
            return Ok(None);
        };
        let session = Self {
            closed_at: state.is_closed().then_some(now),
            progress: self.progress.after(&state),
            version: self.version.next(),
            state,
            workflow,
            ..self.clone()
        };
        Ok(Some(Change { session, effects, event: name, node, at: now }))
    }

    /// As [`Session::apply`], for news that comes from a browser: refused when the session has
    /// moved on to another one.
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
