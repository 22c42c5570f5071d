//! What the applicant does over the active viewer's connection.

use std::{sync::PoisonError, time::Duration};

use domain::{session::Event, workflow::PromptKind};
use ports::browser::Input;
use tokio::time::Instant;

use super::{ActiveViewer, HandoverCodes};
use crate::{advance::AdvanceError, detached::detached};

/// Time between two join codes that one connection is given.
const MIN_HANDOVER_INTERVAL: Duration = Duration::from_secs(1);
/// Join codes that one connection is given.
const MAX_HANDOVERS: u32 = 100;

impl ActiveViewer {
    /// Returns whether this connection may be given one more join code now, and counts it.
    pub(super) fn may_hand_over(&self) -> bool {
        let mut codes = self.handovers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = codes.last.is_some_and(|last| last.elapsed() < MIN_HANDOVER_INTERVAL);
        if is_early || codes.count >= MAX_HANDOVERS {
            return false;
        }
        *codes = HandoverCodes { last: Some(Instant::now()), count: codes.count.saturating_add(1) };
        true
    }

    /// Takes an answer to the consent prompt with this number, if this connection was shown it.
    pub(super) async fn answer(&self, number: u32, agreed: bool) {
        let is_shown = {
            let sent = self.sent();
            let prompt = sent.view.as_ref().and_then(|view| view.prompt.as_ref());
            prompt.is_some_and(|p| p.kind == PromptKind::Consent && p.number == number)
        };
        let mut is_accepted = false;
        if is_shown {
            self.live.state.send_if_modified(|state| {
                is_accepted = state.answer_consent(number, agreed);
                is_accepted
            });
        }
        if !is_accepted {
            tracing::warn!(session.id = %self.id, "ignored an answer: no consent prompt waits for it");
            return;
        }
        let (devices, live) = (self.services.devices.clone(), self.live.clone());
        let (id, device) = (self.id, self.device);
        let record = async move {
            let recorded = devices.record_consent(id, device, agreed).await;
            live.state.send_modify(|state| state.consent_recorded(number, recorded.is_ok()));
            recorded
        };
        if let Err(error) = detached(&self.services.runtime, record).await {
            let error: &dyn std::error::Error = &error;
            tracing::error!(session.id = %self.id, error, "failed to record a consent; the applicant can answer again");
        }
    }

    /// Lets the guest with this number join, or refuses it.
    pub(super) async fn admit(&self, number: u8, allowed: bool) {
        let guest = self.live.state.borrow().guest.clone();
        let Some(guest) = guest.filter(|guest| guest.number == number) else { return };
        let admitted = if allowed {
            let (devices, id) = (self.services.devices.clone(), self.id);
            let secret = guest.secret.clone();
            let add = async move { devices.approve(id, &secret).await };
            detached(&self.services.runtime, add).await.unwrap_or_else(|error| {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to add an approved device; its guest is refused");
                None
            })
        } else {
            None
        };
        self.live.state.send_modify(|state| {
            if state.guest.as_ref().is_some_and(|asking| asking.id == guest.id) {
                state.guest = None;
                state.decided = Some((guest.id, admitted.is_some()));
            }
        });
    }

    /// Ends the session at the applicant's wish.
    pub(super) async fn end(&self, event: Event) {
        let (engine, id) = (self.services.engine.clone(), self.id);
        let end = async move { engine.advance(id, None, event).await };
        match detached(&self.services.runtime, end).await {
            Ok(_) | Err(AdvanceError::Rejected(_)) => (),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to end a session for its applicant");
            }
        }
    }

    /// Starts another attempt, if one is offered.
    pub(super) async fn retry(&self) {
        let (engine, starter) = (self.services.engine.clone(), self.services.starter.clone());
        let (live, id, begins_here) = (self.live.clone(), self.id, self.begins_here());
        let retry = async move {
            let session = engine.advance(id, None, Event::RetryRequested).await?;
            live.state.send_modify(|state| state.failed_starts = 0);
            if begins_here {
                starter.start(&session).await;
            }
            Ok(())
        };
        match detached(&self.services.runtime, retry).await {
            Ok(()) | Err(AdvanceError::Rejected(_)) => (),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %self.id, error, "failed to start another attempt; the applicant can try again");
            }
        }
    }

    /// Passes an input on to the browser. It borrows the live session's state: this runs for each
    /// key press.
    pub(super) fn input(&self, input: Input) {
        if let Input::Resize(viewport) = input {
            self.live.state.send_if_modified(|state| {
                state.device.viewport = viewport;
                false
            });
        }
        if input.is_text_input() {
            self.live.text_input.send_replace(());
        }
        let browser = {
            let state = self.live.state.borrow();
            // The controls of an outline are those of a page that is shown.
            let is_accepted = if matches!(input, Input::Activate(_)) {
                state.shows_page()
            } else {
                !state.is_closed()
            };
            state.browser.as_ref().filter(|_| is_accepted).cloned()
        };
        if let Some(browser) = browser {
            browser.input(input);
        }
    }
}
