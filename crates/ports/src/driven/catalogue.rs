//! The catalogue of platforms and their published definitions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    id::PlatformId,
    platform::{CanaryShare, Platform, PublishedVersion, VersionChange},
    session::{DefinitionVersion, Session},
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

    /// Returns the definition that new sessions of a platform run.
    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError>;

    /// Returns the definition that a session runs: the one that it has begun with, or else the one
    /// that it will begin with as things are.
    async fn definition_of(
        &self,
        session: &Session,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError>;

    /// Returns the published versions of a platform, the newest first: at most
    /// [`MAX_VERSIONS`].
    async fn versions(&self, id: PlatformId) -> Result<Vec<PublishedVersion>, StoreError>;

    /// Publishes a validated definition of a platform: for all new sessions, or for a share of them.
    /// The first definition creates the platform, for all. Publishing the same definition again
    /// changes nothing.
    ///
    /// # Errors
    /// [`PublishError::AlreadyPublished`] if new sessions run another version by now.
    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError>;

    /// Changes the versions that new sessions of a platform run.
    ///
    /// # Errors
    /// [`ChooseVersionError::Changed`] if they do not run those that the change begins with.
    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
        now: DateTime<Utc>,
    ) -> Result<(), ChooseVersionError>;
}

/// The most versions that are listed.
pub const MAX_VERSIONS: u16 = 200;

#[derive(Debug, thiserror::Error)]
pub enum ChooseVersionError {
    #[error("there is no platform {0}")]
    NoPlatform(PlatformId),
    #[error("version {0} of the platform is not published")]
    NotPublished(String),
    #[error("the versions of the platform have been changed meanwhile")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("version {0} is already published with different content: choose a new version")]
    VersionTaken(String),
    #[error(
        "version {0} is already published, and nothing was changed: choose it among the platform's \
         versions to have new sessions run it"
    )]
    AlreadyPublished(String),
    #[error("platform `{0}` belongs to the other environment")]
    OtherEnvironment(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
