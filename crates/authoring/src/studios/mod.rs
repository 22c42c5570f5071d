//! The studios that are open in a process, and the drafts that authors write in them.

mod drafts;
mod key;
mod publisher;
mod stored_draft;
mod versions;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{
    id::{DraftId, InstanceId, UserId},
    workflow::Fixture,
};
use ports::{
    audit_log::AuditLog,
    authoring::{
        AttestationProbe, AuthoringBrowsers, AuthoringRuns, DefinitionStorage, DraftStore,
    },
    catalogue::Catalogue,
    clock::Clock,
    definition_syntax::DefinitionSyntax,
    driving::{DefinitionService, PlatformAdminService},
    places::Places,
    random::RandomSource,
};
use tokio::{runtime::Handle, time::Instant};

use self::{key::StudioKey, stored_draft::StoredDraft};
use crate::studio::{DefinitionPublisher, Studio, StudioError, StudioParts, TraceSink};

/// The time after which a studio whose page is not open any more is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const IDLE_INTERVAL: Duration = Duration::from_secs(15);
/// The studios that are open in a process at most. Each has a browser.
const MAX_STUDIOS: usize = 4;

/// What studios work with.
pub struct StudiosParts {
    pub definitions: Arc<dyn DefinitionService>,
    pub syntax: Arc<dyn DefinitionSyntax>,
    pub browsers: Arc<dyn AuthoringBrowsers>,
    pub drafts: Arc<dyn DraftStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub platforms: Arc<dyn PlatformAdminService>,
    pub audit: Arc<dyn AuditLog>,
    pub places: Arc<dyn Places>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
    /// This process, which the keys of its studios name; `None` for one that is alone.
    pub instance: Option<InstanceId>,
    /// The runtime that studios observe their browsers on.
    pub runtime: Handle,
}

/// The open studios of a process.
#[derive(Clone)]
pub struct Studios {
    parts: Arc<StudiosParts>,
    open: Arc<Mutex<HashMap<String, Arc<OpenStudio>>>>,
    /// Held while a studio is opened, so that two requests at once do not exceed a limit.
    opening: Arc<tokio::sync::Mutex<()>>,
}

/// What a studio writes.
pub struct StudioDocument {
    pub document: String,
    pub fixture: Option<Fixture>,
    /// Whether the document is stored already.
    pub is_saved: bool,
    pub storage: Arc<dyn DefinitionStorage>,
    /// `None` where nothing can be published.
    pub publisher: Option<Arc<dyn DefinitionPublisher>>,
    /// `None` where no host can be probed.
    pub probe: Option<Arc<dyn AttestationProbe>>,
    /// The ISO 3166-1 code of the country of its browsers.
    pub country: String,
    /// The path of the page that the author comes from.
    pub home: Option<String>,
}

struct OpenStudio {
    studio: Arc<Studio>,
    runs: Arc<dyn AuthoringRuns>,
    /// `None` for whoever has started the process.
    author: Option<StudioAuthor>,
    used_at: Mutex<Instant>,
}

/// The author in the portal that a studio belongs to, and what they write.
struct StudioAuthor {
    user: UserId,
    draft: Arc<StoredDraft>,
}

impl OpenStudio {
    fn used_at(&self) -> MutexGuard<'_, Instant> {
        self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the page of an author's studio has not been open for a while.
    async fn idle(&self) {
        loop {
            tokio::time::sleep(IDLE_INTERVAL).await;
            if self.author.is_some() && self.used_at().elapsed() >= IDLE_TIMEOUT {
                return;
            }
        }
    }
}

impl Studios {
    #[must_use]
    pub fn new(parts: StudiosParts) -> Self {
        Self { parts: Arc::new(parts), open: Arc::default(), opening: Arc::default() }
    }

    fn studios(&self) -> MutexGuard<'_, HashMap<String, Arc<OpenStudio>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the instance that the key of a studio names; `None` for a key of a process that is alone, and
    /// for what is no key.
    #[must_use]
    pub fn instance_of(key: &str) -> Option<InstanceId> {
        StudioKey::parse(key)?.instance()
    }

    /// Opens a studio for whoever has started the process, and returns the key that is part of its
    /// address, with which anyone can use it. It stays open.
    ///
    /// # Errors
    /// No browser can be started, or the document is no definition.
    pub async fn open_local(&self, document: StudioDocument) -> Result<String, StudioError> {
        let (key, opened) = self.add(document, None);
        opened.studio.open().await?;
        Ok(key)
    }

    /// Returns an open studio by its key: that of this author, or of whoever has started the process.
    #[must_use]
    pub fn find(&self, key: &str, author: Option<UserId>) -> Option<Arc<Studio>> {
        let found = self.studios().get(key).cloned()?;
        if found.author.as_ref().is_some_and(|owner| Some(owner.user) != author) {
            return None;
        }
        *found.used_at() = Instant::now();
        Some(found.studio.clone())
    }

    /// Returns whether there is a studio with this key whose author has to be signed in.
    #[must_use]
    pub fn requires_sign_in(&self, key: &str) -> bool {
        self.studios().get(key).is_some_and(|found| found.author.is_some())
    }

    /// Adds a studio, and observes its browser until it is closed.
    fn add(
        &self,
        document: StudioDocument,
        author: Option<StudioAuthor>,
    ) -> (String, Arc<OpenStudio>) {
        let parts = &self.parts;
        let trace = Arc::new(TraceSink::new(parts.clock.clone()));
        let runs = parts.browsers.runs(trace.clone(), &document.country);
        let studio = StudioParts {
            definitions: parts.definitions.clone(),
            syntax: parts.syntax.clone(),
            runs: runs.clone(),
            storage: document.storage.clone(),
            publisher: document.publisher.clone(),
            clock: parts.clock.clone(),
            probe: document.probe.clone(),
            home: document.home.clone(),
            time_zone: parts.places.locale(&document.country).time_zone,
        };
        let studio = Arc::new(Studio::new(studio, &trace, document));
        let used_at = Mutex::new(Instant::now());
        let opened = Arc::new(OpenStudio { studio, runs, author, used_at });
        let key = StudioKey::new(parts.instance, parts.random.random_bytes()).expose();
        self.studios().insert(key.clone(), opened.clone());
        let (studios, watched, own) = (self.clone(), opened.clone(), key.clone());
        parts.runtime.spawn(async move {
            tokio::select! {
                () = watched.studio.watch() => (),
                () = studios.close_when_idle(&own, &watched) => (),
            }
        });
        (key, opened)
    }

    /// Returns the key of the studio in which an author writes a draft.
    fn key_of(&self, user: UserId, draft: DraftId) -> Option<String> {
        let is_of_draft = |opened: &OpenStudio| {
            let author = opened.author.as_ref();
            author.is_some_and(|author| author.user == user && author.draft.id() == draft)
        };
        let studios = self.studios();
        let found = studios.iter().find(|(_, opened)| is_of_draft(opened));
        found.map(|(key, _)| key.clone())
    }

    /// Returns when a studio is closed, since its page was not open any more.
    async fn close_when_idle(&self, key: &str, opened: &OpenStudio) {
        loop {
            opened.idle().await;
            if self.close(key).await.is_ok() {
                return;
            }
        }
    }

    /// Closes all studios, as [`Self::find`] does not find them any more.
    pub async fn close_all(&self) {
        let keys: Vec<_> = self.studios().keys().cloned().collect();
        for key in keys {
            if let Err(error) = self.close(&key).await {
                tracing::error!(%error, "the changes in a studio are lost, since the service ends");
            }
        }
    }

    /// Closes a studio: stores what was not stored of a draft, and ends its browser.
    ///
    /// # Errors
    /// The changes cannot be stored. The studio stays open with them.
    async fn close(&self, key: &str) -> Result<(), StudioError> {
        // It is removed first, so that nothing is changed in it meanwhile.
        let Some(closed) = self.studios().remove(key) else { return Ok(()) };
        // What is in a file changes when its author says so.
        let stored =
            if closed.author.is_some() { closed.studio.save_changes().await } else { Ok(()) };
        closed.runs.close().await;
        if let Err(error) = &stored {
            tracing::warn!(%error, "a studio stays open, since its changes cannot be stored");
            *closed.used_at() = Instant::now();
            self.studios().insert(key.to_owned(), closed);
        }
        stored
    }

    /// Closes a studio without storing anything.
    async fn discard(&self, key: &str) {
        let closed = self.studios().remove(key);
        if let Some(closed) = closed {
            closed.runs.close().await;
        }
    }
}

#[cfg(test)]
mod tests;
