//! Where an applicant's view and a session's browser meet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{
    binding::SecretHash,
    id::SessionId,
    session::Session,
    workflow::{Definition, PromptKind},
};
use ports::{
    browser::{Browser, Device},
    driving::Prompt,
};
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// The rooms of this process, by session.
#[derive(Default)]
pub struct SessionHub {
    rooms: Mutex<HashMap<SessionId, Arc<LiveSession>>>,
}

/// One session's room.
pub(crate) struct LiveSession {
    pub(crate) state: watch::Sender<LiveState>,
    /// Told when the applicant writes something; never what.
    pub(crate) text_input: watch::Sender<()>,
}

/// What is in a room.
#[derive(Clone, Default)]
pub(crate) struct LiveState {
    pub(crate) session: Option<Session>,
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) browser: Option<Arc<dyn Browser>>,
    pub(crate) prompt: Option<Prompt>,
    /// The number of the last prompt.
    pub(crate) prompts: u32,
    /// The applicant's answer to the last prompt, where that asks for consent.
    pub(super) consent: Option<ConsentAnswer>,
    pub(crate) device: Device,
    pub(crate) language: Option<String>,
    /// Counts the viewers that have come; the last one is the active one.
    pub(crate) viewer: u64,
    pub(crate) present: bool,
    /// A guest who asks the active viewer to let it join.
    pub(crate) guest: Option<JoinAttempt>,
    /// The last guest about whom the active viewer decided, and how.
    pub(crate) decided: Option<(u64, bool)>,
    /// How many guests have asked.
    pub(crate) asked: u64,
    /// The session's place among those that wait for a browser, from 1.
    pub(crate) place: Option<u32>,
    /// How often the session's browser could not be started.
    pub(crate) failed_starts: u32,
    /// Onlookers, who see and do not act.
    pub(crate) onlookers: u8,
}

/// A guest who asks to join.
#[derive(Clone)]
pub(crate) struct JoinAttempt {
    /// Which of those who have asked it is.
    pub(crate) id: u64,
    /// Two digits, shown to both sides, so that the active viewer knows whom they let in.
    pub(crate) number: u8,
    pub(crate) secret: SecretHash,
}

/// The one answer that a question for consent takes.
#[derive(Clone, Copy)]
pub(super) struct ConsentAnswer {
    /// The number of the prompt that is answered.
    prompt: u32,
    agreed: bool,
    /// Whether the store has it, with the device that gave it. Only then it takes effect.
    recorded: bool,
}

impl SessionHub {
    fn rooms(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<LiveSession>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's room; made where there is none.
    pub(crate) fn enter(&self, id: SessionId) -> Arc<LiveSession> {
        self.rooms().entry(id).or_insert_with(|| Arc::new(LiveSession::new())).clone()
    }

    /// Tells whoever is in the session's room how it stands.
    pub(crate) fn tell(&self, session: &Session) {
        if let Some(room) = self.find(session.id) {
            room.tell(session);
        }
    }

    /// The session's room, where there is one.
    pub(crate) fn find(&self, id: SessionId) -> Option<Arc<LiveSession>> {
        self.rooms().get(&id).cloned()
    }

    /// Gives the room up when nobody and nothing is in it.
    pub(crate) fn leave(&self, id: SessionId) {
        let mut rooms = self.rooms();
        let empty = rooms.get(&id).is_some_and(|room| {
            let inside = room.state.borrow();
            !inside.present && inside.browser.is_none() && inside.onlookers == 0
        });
        if empty {
            rooms.remove(&id);
        }
    }
}

impl LiveState {
    /// Prompts the applicant, under a number of its own. `false`: the same prompt is there already.
    pub(super) fn ask(&mut self, prompt: Prompt) -> bool {
        let number = self.prompts;
        if self.prompt == Some(Prompt { number, ..prompt.clone() }) {
            return false;
        }
        let number = number.wrapping_add(1);
        self.prompts = number;
        self.prompt = Some(Prompt { number, ..prompt });
        self.consent = None;
        true
    }

    /// Accepts the answer to the question for consent with this number, which is then to be
    /// recorded. `false`: that is not the question, or it has an answer already.
    pub(super) fn answer_consent(&mut self, prompt: u32, agreed: bool) -> bool {
        let asked = self
            .prompt
            .as_ref()
            .is_some_and(|asked| asked.kind == PromptKind::Consent && asked.number == prompt);
        let accepted = asked && self.consent.is_none();
        if accepted {
            self.consent = Some(ConsentAnswer { prompt, agreed, recorded: false });
        }
        accepted
    }

    /// Lets the answer to this question take effect once it is recorded; where that failed, the
    /// question can be answered again.
    pub(super) fn consent_recorded(&mut self, prompt: u32, recorded: bool) {
        self.consent = self.consent.filter(|answer| recorded || answer.prompt != prompt);
        if let Some(answer) = self.consent.as_mut().filter(|answer| answer.prompt == prompt) {
            answer.recorded = true;
        }
    }

    /// Whether the applicant agreed, once they have answered the question that is asked now.
    pub(super) fn consent(&self) -> Option<bool> {
        let asked = self.prompt.as_ref()?;
        let answer = self.consent.filter(|answer| answer.prompt == asked.number)?;
        answer.recorded.then_some(answer.agreed)
    }
}

impl LiveSession {
    fn new() -> Self {
        Self { state: watch::Sender::default(), text_input: watch::Sender::default() }
    }

    /// Takes news of the session in, unless newer news came before.
    pub(crate) fn tell(&self, session: &Session) {
        self.state.send_if_modified(|inside| {
            let newer = inside.session.as_ref().is_none_or(|old| old.version < session.version);
            if newer {
                inside.session = Some(session.clone());
                if session.state.ask().is_none() {
                    inside.prompt = None;
                }
            }
            newer
        });
    }
}
