//! What an author needs to try a definition out while it is written: runs of it in a browser, and a
//! place to keep it.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    id::{DraftId, TeamId},
    workflow::{Definition, Fixture},
};

use crate::{StoreError, browser::Browser, workflow_trace::WorkflowTrace};

/// Creates runs for authors.
pub trait AuthoringBrowsers: Send + Sync {
    /// Returns runs in a country, given by its ISO 3166-1 code. Nothing runs before one is opened.
    fn runs(&self, trace: Arc<dyn WorkflowTrace>, country: &str) -> Arc<dyn AuthoringRuns>;

    /// Returns whether runs can begin in this process: not once it is about to stop, nor if it has no
    /// browsers.
    fn begins_runs(&self) -> bool;
}

/// What a run in a new browser is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPurpose {
    /// The author looks around.
    Explore,
    /// It is captured as a fixture.
    Capture,
}

/// Runs definitions for one author, who plays the applicant, in one browser at a time. Each run is
/// traced.
#[async_trait]
pub trait AuthoringRuns: Send + Sync {
    /// Starts a new browser with an empty profile, in which a definition runs once the author opens the
    /// returned URL, and ends the browser before it. The new browser visits the definition's hosts
    /// only.
    ///
    /// # Errors
    /// The run cannot be created. Where no runs begin any more, the browser before it goes on.
    async fn open(
        &self,
        definition: &Definition,
        purpose: RunPurpose,
    ) -> Result<String, AuthoringError>;

    /// Has a run of another definition begin in the same browser, which is not captured. Does nothing if
    /// there is none.
    fn reload(&self, definition: Arc<Definition>);

    /// Returns the browser; `None` if none runs.
    fn browser(&self) -> Option<Arc<dyn Browser>>;

    /// Returns a fixture of the run that has just ended, and forgets it; `None` if it was too long or
    /// too large, or was not to be captured.
    fn fixture(&self, definition: &Definition) -> Option<Fixture>;

    /// Ends the browser. Does nothing if there is none.
    async fn close(&self);
}

/// Whether the answers of a host can be attested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAssessment {
    pub host: String,
    pub can_attest: bool,
    /// What speaks against it, or should be known, in sentences.
    pub reasons: Vec<String>,
}

/// Connects to hosts to tell whether their answers can be attested.
#[async_trait]
pub trait AttestationProbe: Send + Sync {
    /// Assesses a host by its answer to an HTTPS URL. It takes up to 20 seconds.
    async fn assess(&self, host: &str, url: &str) -> HostAssessment;
}

/// Keeps what an author has written.
#[async_trait]
pub trait DefinitionStorage: Send + Sync {
    /// Stores a document, which may have errors, and its fixture, in place of those before.
    async fn save(
        &self,
        document: &str,
        fixture: Option<&Fixture>,
    ) -> Result<Stored, AuthoringError>;

    /// Returns the names under which the document and the fixture are stored.
    fn names(&self) -> (String, String);
}

/// How something was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Whether it is beside what was there before, which someone else has changed or deleted. What is
    /// stored next replaces the copy.
    pub is_copy: bool,
    /// Whether there is a fixture, and it was not too large to be stored.
    pub has_fixture: bool,
}

/// The drafts of a team that are stored at most.
pub const MAX_DRAFTS: usize = 200;

/// A definition that authors of a team are writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    pub team: TeamId,
    /// The name of the platform that applicants see.
    pub name: String,
    /// The version in the document.
    pub version: String,
    /// Greater with each change.
    pub revision: i32,
    /// The e-mail address of the author of the last change.
    pub updated_by: String,
    pub updated_at: DateTime<Utc>,
}

/// What a draft consists of, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftContent {
    pub document: String,
    pub fixture: Option<String>,
}

/// Stores drafts. A fixture is encrypted.
#[async_trait]
pub trait DraftStore: Send + Sync {
    /// Returns a team's drafts, the one that was changed last first: at most [`MAX_DRAFTS`].
    async fn drafts(&self, team: TeamId) -> Result<Vec<Draft>, StoreError>;

    async fn draft(
        &self,
        team: TeamId,
        id: DraftId,
    ) -> Result<Option<(Draft, DraftContent)>, StoreError>;

    /// Adds a draft. Returns `false` if the team has [`MAX_DRAFTS`] already.
    async fn add_draft(&self, draft: &Draft, content: &DraftContent) -> Result<bool, StoreError>;

    /// Stores a draft in place of its revision before. Returns `false` if that one is not there, since
    /// another author has stored or deleted the draft.
    async fn replace_draft(
        &self,
        draft: &Draft,
        content: &DraftContent,
    ) -> Result<bool, StoreError>;

    /// Deletes a draft. Returns `false` if there is none.
    async fn delete_draft(&self, team: TeamId, id: DraftId) -> Result<bool, StoreError>;

    /// Prepares the platform that sessions of drafts in an environment belong to
    /// ([`domain::id::PlatformId::of_drafts`]), if it is not there. No list and no lookup has it.
    async fn prepare_platform_of_drafts(&self, environment: Environment) -> Result<(), StoreError>;
}

/// Why something cannot be done for an author, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthoringError(pub String);
