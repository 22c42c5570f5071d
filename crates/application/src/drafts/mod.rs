//! Sessions in which authors try out definitions that are not published.
//!
//! Such a session is like any other, but belongs to a team of its own, has no webhooks, and is not
//! counted. What it runs is known to the process that created it alone.

mod catalogue;
mod runs;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::{id::SessionId, workflow::Definition};

pub use self::{
    catalogue::DraftCatalogue,
    runs::{DraftBrowsers, DraftRuns},
};
use crate::live::AuthorTools;

/// What the sessions of authors run, in this process. Each author has one of them at a time.
#[derive(Default)]
pub struct DraftSessions(Mutex<HashMap<SessionId, DraftSession>>);

#[derive(Clone)]
struct DraftSession {
    definition: Arc<Definition>,
    tools: Arc<AuthorTools>,
}

impl DraftSessions {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, DraftSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: SessionId, session: DraftSession) {
        self.sessions().insert(id, session);
    }

    fn remove(&self, id: SessionId) {
        self.sessions().remove(&id);
    }

    fn definition(&self, id: SessionId) -> Option<Arc<Definition>> {
        self.sessions().get(&id).map(|session| session.definition.clone())
    }

    /// Returns what the author of a session learns of it; `None` if it has none.
    pub(crate) fn tools(&self, id: SessionId) -> Option<Arc<AuthorTools>> {
        self.sessions().get(&id).map(|session| session.tools.clone())
    }
}
