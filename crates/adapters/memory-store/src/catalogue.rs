//! Platforms and their published definitions.

use std::{collections::BTreeMap, fmt::Write as _};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    id::PlatformId,
    platform::{Platform, PlatformSummary},
    session::DefinitionVersion,
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, CatalogueRevision, PublishError},
};
use sha2::{Digest as _, Sha256};

use crate::MemoryStore;

/// The platforms, and the number of changes to them.
#[derive(Default)]
pub(crate) struct Platforms {
    records: BTreeMap<PlatformId, PlatformRecord>,
    revision: i64,
}

struct PlatformRecord {
    platform: Platform,
    /// In the order of their publication; the last one is the newest.
    definitions: Vec<(DefinitionVersion, Definition)>,
}

impl Platforms {
    pub(crate) const fn revision(&self) -> CatalogueRevision {
        CatalogueRevision(self.revision)
    }

    pub(crate) fn has(&self, id: PlatformId) -> bool {
        self.records.contains_key(&id)
    }

    /// Returns the part of a platform that sessions show.
    pub(crate) fn card(&self, id: PlatformId) -> Option<PlatformSummary> {
        let platform = &self.records.get(&id)?.platform;
        Some(PlatformSummary {
            id,
            name: platform.name.clone(),
            display_name: platform.display_name.clone(),
            icon: platform.icon.clone(),
            login_url: platform.login_url.clone(),
        })
    }

    /// Returns the number of the platform of this name, or the next free one.
    fn number_of(&self, name: &str) -> PlatformId {
        let known = self.records.values().find(|record| record.platform.name == name);
        let next = || self.records.last_key_value().map_or(0, |(id, _)| id.0).saturating_add(1);
        known.map_or_else(|| PlatformId(next()), |record| record.platform.id)
    }

    fn publish(
        &mut self,
        definition: &Definition,
        pinned: DefinitionVersion,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let id = self.number_of(&definition.platform);
        let before = self.records.get(&id);
        if before.is_some_and(|record| record.platform.environment != definition.environment) {
            return Err(PublishError::OtherEnvironment(definition.platform.clone()));
        }
        let mut definitions = before.into_iter().flat_map(|record| &record.definitions);
        match definitions.find(|(other, _)| other.version == pinned.version) {
            Some((other, _)) if *other != pinned => {
                return Err(PublishError::VersionTaken(pinned.version));
            }
            Some(_) => return Ok((id, pinned)),
            None => (),
        }
        let created_at = before.map_or(now, |record| record.platform.created_at);
        let platform = shown(definition, id, created_at, now);
        let fresh = || PlatformRecord { platform: platform.clone(), definitions: vec![] };
        let record = self.records.entry(id).or_insert_with(fresh);
        record.definitions.push((pinned.clone(), definition.clone()));
        record.platform = platform;
        self.revision = self.revision.saturating_add(1);
        Ok((id, pinned))
    }
}

/// Returns the platform as the lookup shows it once this definition is published.
fn shown(
    definition: &Definition,
    id: PlatformId,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
) -> Platform {
    Platform {
        id,
        environment: definition.environment,
        name: definition.platform.clone(),
        display_name: definition.display_name.clone(),
        description: definition.description.clone(),
        icon: definition.icon.clone(),
        login_url: definition.login_url.clone(),
        is_active: true,
        version: definition.version.clone(),
        created_at,
        updated_at,
    }
}

/// Returns the version of a definition and the hash of its content.
fn pin(definition: &Definition) -> Result<DefinitionVersion, StoreError> {
    // A JSON value sorts its members, so equal definitions are equal text.
    let document = serde_json::to_value(definition)
        .map_err(|error| StoreError::new("write a definition", error))?;
    let hash = Sha256::digest(document.to_string());
    let sha256 = hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(DefinitionVersion { version: definition.version.clone(), sha256 })
}

#[async_trait]
impl Catalogue for MemoryStore {
    async fn platforms(&self, environment: Environment) -> Result<Vec<Platform>, StoreError> {
        let catalogue = &self.state().catalogue;
        let platforms = catalogue.records.values().map(|record| &record.platform);
        Ok(platforms.filter(|platform| platform.environment == environment).cloned().collect())
    }

    async fn platform(&self, id: PlatformId) -> Result<Option<Platform>, StoreError> {
        Ok(self.state().catalogue.records.get(&id).map(|record| record.platform.clone()))
    }

    async fn definition(
        &self,
        id: PlatformId,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        let catalogue = &self.state().catalogue;
        Ok(catalogue.records.get(&id).and_then(|record| record.definitions.last().cloned()))
    }

    async fn publish(
        &self,
        definition: &Definition,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let pinned = pin(definition)?;
        self.state().catalogue.publish(definition, pinned, now)
    }
}
