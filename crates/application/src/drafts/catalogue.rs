//! The catalogue with the definitions of drafts.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    id::PlatformId,
    platform::{CanaryShare, Platform, PublishedVersion, VersionChange},
    session::{DefinitionVersion, Session},
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, ChooseVersionError, PublishError},
};

use super::DraftSessions;

/// Adds the platforms of drafts to a catalogue, and what sessions of them run. Lists have none of
/// them.
pub struct DraftCatalogue {
    pub published: Arc<dyn Catalogue>,
    pub drafts: Arc<DraftSessions>,
}

/// Returns the platform that sessions of drafts belong to.
fn platform_of_drafts(id: PlatformId) -> Option<Platform> {
    let mut all = [Environment::Development, Environment::Production].into_iter();
    let environment = all.find(|environment| PlatformId::of_drafts(*environment) == id)?;
    Some(Platform {
        id,
        environment,
        name: format!("draft:{}", environment.as_str()),
        display_name: "Draft".to_owned(),
        description: String::new(),
        icon: String::new(),
        login_url: String::new(),
        is_active: true,
        version: String::new(),
        canary: None,
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH,
    })
}

#[async_trait]
impl Catalogue for DraftCatalogue {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        self.published.platforms(environment).await
    }

    async fn platform(&self, id: PlatformId) -> Result<Option<Platform>, StoreError> {
        if id.is_of_drafts() {
            return Ok(platform_of_drafts(id));
        }
        self.published.platform(id).await
    }

    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        self.published.definition(id).await
    }

    async fn definition_of(
        &self,
        session: &Session,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        if !session.terms.platform.is_of_drafts() {
            return self.published.definition_of(session).await;
        }
        let definition = self.drafts.definition(session.id);
        Ok(definition.map(|definition| {
            // It changes while the session runs, so that no hash could stand for it.
            let version =
                DefinitionVersion { version: definition.version.clone(), sha256: String::new() };
            (version, (*definition).clone())
        }))
    }

    async fn versions(&self, id: PlatformId) -> Result<Vec<PublishedVersion>, StoreError> {
        self.published.versions(id).await
    }

    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        self.published.publish(definition, canary, now).await
    }

    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
        now: DateTime<Utc>,
    ) -> Result<(), ChooseVersionError> {
        self.published.choose_version(id, change, now).await
    }
}
