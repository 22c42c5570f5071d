//! The catalogue of platforms and their published definitions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment, id::PlatformId, platform::Platform, session::DefinitionVersion,
    workflow::Definition,
};

use crate::StoreError;

/// The revision of the catalogue. It differs after each change to a platform, by any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueRevision(pub i64);

#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Catalogue: Send + Sync {
    /// Returns the platforms of an environment, sorted by number.
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError>;

    async fn platform(&self, id: PlatformId) -> Result<Option<Platform>, StoreError>;

    /// Returns the newest definition of a platform.
    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError>;

    /// Publishes a validated definition as the newest one of its platform. The first definition
    /// creates the platform. Publishing the same definition again changes nothing.
    async fn publish(
        &self,
        definition: &Definition,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError>;
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("version {0} is already published with different content: choose a new version")]
    VersionTaken(String),
    #[error("platform `{0}` belongs to the other environment")]
    OtherEnvironment(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
