//! Publishes platform definitions.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    id::PlatformId,
    platform::{CanaryShare, Platform, PublishedVersion, VersionChange},
    session::DefinitionVersion,
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, ChooseVersionError, PublishError},
    clock::Clock,
    driving::PlatformAdminService,
};

use crate::trusted_keys::once_nobody_trusts_the_earlier_value;

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
        canary: Option<CanaryShare>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let published = self.catalogue.publish(definition, canary, self.clock.now()).await?;
        once_nobody_trusts_the_earlier_value().await;
        Ok(published)
    }

    async fn versions(
        &self,
        id: PlatformId,
    ) -> Result<Option<(Platform, Vec<PublishedVersion>)>, StoreError> {
        let Some(platform) = self.catalogue.platform(id).await? else { return Ok(None) };
        Ok(Some((platform, self.catalogue.versions(id).await?)))
    }

    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
    ) -> Result<(), ChooseVersionError> {
        self.catalogue.choose_version(id, change, self.clock.now()).await?;
        once_nobody_trusts_the_earlier_value().await;
        Ok(())
    }
}
