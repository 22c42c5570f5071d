//! What an attestor has to allow for a platform definition.

use domain::workflow::Definition;

/// Why the plan of a definition cannot be attested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidDescriptor(pub String);

/// Derives descriptors from platform definitions.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait AttestationDescriptors: Send + Sync {
    /// Returns the descriptor of a definition, as JSON; `None` if the definition has no plan for
    /// attestations.
    ///
    /// # Errors
    /// No attestor would accept the descriptor.
    fn descriptor(&self, definition: &Definition) -> Result<Option<String>, InvalidDescriptor>;
}
