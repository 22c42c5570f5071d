//! Publishes platform definitions.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{id::PlatformId, session::DefinitionVersion, workflow::Definition};
use ports::{
    catalogue::{Catalogue, PublishError},
    clock::Clock,
    driving::PlatformAdminService,
};

/// Implements [`PlatformAdminService`].
pub struct PlatformAdministration {
    pub catalogue: Arc<dyn Catalogue>,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl PlatformAdminService for PlatformAdministration {
    async fn publish(
        &self,
        definition: &Definition,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        self.catalogue.publish(definition, self.clock.now()).await
    }
}
