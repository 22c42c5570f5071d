//! A draft as the storage of a studio.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::{audit::AuditEvent, id::DraftId, workflow::Fixture};
use ports::{
    StoreError,
    audit_log::AuditLog,
    authoring::{AuthoringError, DefinitionStorage, Draft, DraftContent, DraftStore, Stored},
    clock::Clock,
    random::RandomSource,
};
use serde_json::Value;

/// The maximum size of a fixture that is stored, in bytes of JSON.
const MAX_FIXTURE_BYTES: usize = 16 * 1024 * 1024;
const MAX_NAME_CHARS: usize = 200;
const MAX_VERSION_CHARS: usize = 100;

/// Returns a member of a document that may have errors.
fn member(document: &str, name: &str, max_chars: usize) -> Option<String> {
    let value = serde_json::from_str::<Value>(document).ok()?;
    let text = value.get(name)?.as_str()?.chars().filter(|c| !c.is_control());
    let text: String = text.take(max_chars).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Sets what a list shows of a draft to what its document has.
pub(super) fn describe(draft: &mut Draft, document: &str) {
    if let Some(name) = member(document, "displayName", MAX_NAME_CHARS) {
        draft.name = name;
    }
    if let Some(version) = member(document, "version", MAX_VERSION_CHARS) {
        draft.version = version;
    }
}

fn failed(error: &StoreError) -> AuthoringError {
    tracing::error!(%error, "failed to store a draft");
    AuthoringError("the draft cannot be stored at the moment: try again".to_owned())
}

/// Stores a draft in place of the revision that the studio has opened or stored last; as a draft of
/// its own if another author has changed or deleted that one meanwhile.
pub(super) struct StoredDraft {
    parts: DraftStorageParts,
    /// The e-mail address of the author.
    author: String,
    newest: tokio::sync::Mutex<Draft>,
    /// The draft as others see it, also while it is stored.
    shown: Mutex<(DraftId, String)>,
}

/// What drafts are stored with.
#[derive(Clone)]
pub(super) struct DraftStorageParts {
    pub(super) store: Arc<dyn DraftStore>,
    pub(super) audit: Arc<dyn AuditLog>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn RandomSource>,
}

impl StoredDraft {
    pub(super) fn new(parts: DraftStorageParts, author: &str, draft: Draft) -> Self {
        let shown = Mutex::new((draft.id, draft.name.clone()));
        let newest = tokio::sync::Mutex::new(draft);
        Self { parts, author: author.to_owned(), newest, shown }
    }

    fn shown(&self) -> (DraftId, String) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the draft that is stored now: a copy of the one that was opened if there was a conflict.
    pub(super) fn id(&self) -> DraftId {
        self.shown().0
    }

    /// Adds a draft of its own with what could not be stored in its place.
    async fn add_copy(
        &self,
        draft: Draft,
        content: &DraftContent,
    ) -> Result<Draft, AuthoringError> {
        let parts = &self.parts;
        let id = DraftId::from_u128(parts.random.new_id());
        let copy = Draft { id, revision: 1, ..draft };
        let event = AuditEvent::new(parts.clock.now(), &self.author, "draft.create", &copy.name);
        parts.audit.note(copy.team, &event).await.map_err(|error| failed(&error))?;
        if parts.store.add_draft(&copy, content).await.map_err(|error| failed(&error))? {
            return Ok(copy);
        }
        let text = "another author has changed or deleted the draft, and your team has too many \
            drafts for a copy: delete one, and save again";
        Err(AuthoringError(text.to_owned()))
    }
}

#[async_trait]
impl DefinitionStorage for StoredDraft {
    async fn save(
        &self,
        document: &str,
        fixture: Option<&Fixture>,
    ) -> Result<Stored, AuthoringError> {
        let fixture = fixture.map(serde_json::to_string).transpose();
        let fixture = fixture.map_err(|error| AuthoringError(error.to_string()))?;
        let fixture = fixture.filter(|text| text.len() <= MAX_FIXTURE_BYTES);
        let has_fixture = fixture.is_some();
        let mut newest = self.newest.lock().await;
        let mut draft = Draft {
            revision: newest.revision.saturating_add(1),
            updated_by: self.author.clone(),
            updated_at: self.parts.clock.now(),
            ..newest.clone()
        };
        describe(&mut draft, document);
        let content = DraftContent { document: document.to_owned(), fixture };
        let replaced = self.parts.store.replace_draft(&draft, &content).await;
        let is_copy = !replaced.map_err(|error| failed(&error))?;
        if is_copy {
            draft = self.add_copy(draft, &content).await?;
        }
        let shown = (draft.id, draft.name.clone());
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        *newest = draft;
        Ok(Stored { is_copy, has_fixture })
    }

    fn names(&self) -> (String, String) {
        (self.shown().1, "recorded run".to_owned())
    }
}
