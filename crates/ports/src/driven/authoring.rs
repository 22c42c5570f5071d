//! What an author needs to try a definition out while it is written: runs of it in a browser, and a
//! place to keep it.

use std::sync::Arc;

use async_trait::async_trait;
use domain::workflow::{Definition, Fixture};

use crate::browser::Browser;

/// Runs definitions for one author, who plays the applicant, in one browser at a time. Each run is
/// traced.
#[async_trait]
pub trait AuthoringRuns: Send + Sync {
    /// Starts a new browser with an empty profile, in which a definition runs once the author opens the
    /// returned URL, and ends the browser before it. The new browser visits the definition's hosts
    /// only.
    async fn open(&self, definition: &Definition) -> Result<String, AuthoringError>;

    /// Has a run of another definition begin in the same browser. Does nothing if there is none.
    fn reload(&self, definition: Arc<Definition>);

    /// Returns the browser; `None` if none runs.
    fn browser(&self) -> Option<Arc<dyn Browser>>;

    /// Returns a fixture of the run that has just ended, and forgets it; `None` if it was too long.
    fn fixture(&self, definition: &Definition) -> Option<Fixture>;
}

/// Keeps what an author has written.
#[async_trait]
pub trait DefinitionStorage: Send + Sync {
    /// Stores a document, which may have errors, and its fixture, in place of those before.
    async fn save(&self, document: &str, fixture: Option<&Fixture>) -> Result<(), AuthoringError>;

    /// Returns the names under which the document and the fixture are stored.
    fn names(&self) -> (String, String);
}

/// Why something cannot be done for an author, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AuthoringError(pub String);
