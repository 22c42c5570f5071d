//! The platforms on offer and their published definitions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment, id::PlatformId, platform::Platform, session::DefinitionVersion,
    workflow::Definition,
};

use crate::StoreError;

/// Which state the platforms are in: another one after each change to any of them, whichever
/// process makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueRevision(pub i64);

#[async_trait]
pub trait Catalogue: Send + Sync {
    /// The platforms of an environment, in the order of their numbers.
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError>;

    async fn platform(&self, id: PlatformId) -> Result<Option<Platform>, StoreError>;

    /// The newest definition of a platform.
    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError>;

    /// Publishes a checked definition and makes it the newest of its platform, which comes into
    /// being with its first. Publishing the same once more changes nothing.
    async fn publish(
        &self,
        definition: &Definition,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError>;
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("version {0} was published before with other content: give it a new version")]
    VersionTaken(String),
    #[error("platform `{0}` belongs to the other environment")]
    OtherEnvironment(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
