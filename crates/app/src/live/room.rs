//! Where an applicant's view and a session's browser meet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{binding::SecretHash, id::SessionId, session::Session, workflow::Definition};
use ports::{
    browser::{Browser, Device},
    driving::Prompt,
};
use tokio::sync::{mpsc, watch};

/// Answers to the question for consent that nobody has taken yet; more are dropped.
const ANSWERS: usize = 4;

/// The rooms of this process, by session.
#[derive(Default)]
pub(crate) struct Rooms {
    rooms: Mutex<HashMap<SessionId, Arc<Room>>>,
}

/// One session's room.
pub(crate) struct Room {
    pub(crate) inside: watch::Sender<Inside>,
    /// Told when the applicant writes something; never what.
    pub(crate) written: watch::Sender<()>,
    pub(crate) answers: mpsc::Sender<bool>,
    pub(crate) answered: tokio::sync::Mutex<mpsc::Receiver<bool>>,
}

/// What is in a room.
#[derive(Clone, Default)]
pub(crate) struct Inside {
    pub(crate) session: Option<Session>,
    pub(crate) definition: Option<Arc<Definition>>,
    pub(crate) browser: Option<Arc<dyn Browser>>,
    pub(crate) prompt: Option<Prompt>,
    /// The number of the last prompt.
    pub(crate) prompts: u32,
    pub(crate) device: Device,
    pub(crate) language: Option<String>,
    /// Counts the viewers that have come; the last one is the active one.
    pub(crate) viewer: u64,
    pub(crate) present: bool,
    /// A guest who asks the active viewer to let it join.
    pub(crate) guest: Option<Asking>,
    /// The last guest about whom the active viewer decided, and how.
    pub(crate) decided: Option<(u64, bool)>,
    /// How many guests have asked.
    pub(crate) asked: u64,
    /// The session's place among those that wait for a browser, from 1.
    pub(crate) place: Option<u32>,
    /// Onlookers, who see and do not act.
    pub(crate) onlookers: u8,
}

/// A guest who asks to join.
#[derive(Clone)]
pub(crate) struct Asking {
    /// Which of those who have asked it is.
    pub(crate) id: u64,
    /// Two digits, shown to both sides, so that the active viewer knows whom they let in.
    pub(crate) number: u8,
    pub(crate) secret: SecretHash,
}

impl Rooms {
    fn rooms(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's room; made where there is none.
    pub(crate) fn enter(&self, id: SessionId) -> Arc<Room> {
        self.rooms().entry(id).or_insert_with(|| Arc::new(Room::new())).clone()
    }

    /// Tells whoever is in the session's room how it stands.
    pub(crate) fn tell(&self, session: &Session) {
        if let Some(room) = self.find(session.id) {
            room.tell(session);
        }
    }

    /// The session's room, where there is one.
    pub(crate) fn find(&self, id: SessionId) -> Option<Arc<Room>> {
        self.rooms().get(&id).cloned()
    }

    /// Gives the room up when nobody and nothing is in it.
    pub(crate) fn leave(&self, id: SessionId) {
        let mut rooms = self.rooms();
        let empty = rooms.get(&id).is_some_and(|room| {
            let inside = room.inside.borrow();
            !inside.present && inside.browser.is_none() && inside.onlookers == 0
        });
        if empty {
            rooms.remove(&id);
        }
    }
}

impl Inside {
    /// Prompts the applicant, under a number of its own. `false`: the same prompt is there already.
    pub(super) fn ask(&mut self, prompt: Prompt) -> bool {
        let number = self.prompts;
        if self.prompt == Some(Prompt { number, ..prompt.clone() }) {
            return false;
        }
        let number = number.wrapping_add(1);
        self.prompts = number;
        self.prompt = Some(Prompt { number, ..prompt });
        true
    }
}

impl Room {
    fn new() -> Self {
        let (answers, answered) = mpsc::channel(ANSWERS);
        Self {
            inside: watch::Sender::default(),
            written: watch::Sender::default(),
            answers,
            answered: tokio::sync::Mutex::new(answered),
        }
    }

    /// Takes news of the session in, unless newer news came before.
    pub(crate) fn tell(&self, session: &Session) {
        self.inside.send_if_modified(|inside| {
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
