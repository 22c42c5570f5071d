//! Validates platform definitions, and derives what an attestor has to allow for them.

use std::sync::Arc;

use domain::workflow::{Definition, check};
use ports::{
    attestation_descriptors::{AttestationDescriptors, InvalidDescriptor},
    driving::{DefinitionService, InvalidDefinition},
};

/// Implements [`DefinitionService`].
pub struct DefinitionValidation {
    pub descriptors: Arc<dyn AttestationDescriptors>,
}

impl DefinitionService for DefinitionValidation {
    fn validate(&self, document: &str) -> Result<Definition, InvalidDefinition> {
        let definition: Definition = serde_json::from_str(document)
            .map_err(|error| InvalidDefinition::Unreadable(error.to_string()))?;
        let mut errors: Vec<_> = check(&definition).iter().map(ToString::to_string).collect();
        if let Err(error) = self.descriptors.descriptor(&definition) {
            errors.push(format!("attest: {error}"));
        }
        if errors.is_empty() { Ok(definition) } else { Err(InvalidDefinition::Errors(errors)) }
    }

    fn descriptor(&self, definition: &Definition) -> Result<Option<String>, InvalidDescriptor> {
        self.descriptors.descriptor(definition)
    }
}
