//! What publishes the definition of a studio.

use async_trait::async_trait;
use domain::{platform::CanaryShare, workflow::Definition};
use ports::{authoring::AuthoringError, driving::SignedInUser};

/// Publishes the definition of a studio.
#[async_trait]
pub trait DefinitionPublisher: Send + Sync {
    /// Publishes a definition for all new sessions, or for a share of them, in the name of the author
    /// whose request asks for it.
    async fn publish(
        &self,
        author: &SignedInUser,
        definition: &Definition,
        canary: Option<CanaryShare>,
    ) -> Result<(), PublicationError>;
}

/// Why a definition is not published.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    /// The author has to re-authenticate first.
    #[error("confirm your identity to publish")]
    Unconfirmed {
        /// The path of a page of the portal on which the author does so, and comes back.
        page: String,
    },
    #[error(transparent)]
    Refused(#[from] AuthoringError),
}
