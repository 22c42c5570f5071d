//! Platforms and their published definitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    id::PlatformId,
    platform::{
        ActiveVersions, Canary, CanaryShare, Platform, PlatformSummary, PublishedVersion,
        VersionChange,
    },
    session::{DefinitionVersion, Session},
    workflow::Definition,
};
use ports::{
    StoreError,
    catalogue::{Catalogue, CatalogueRevision, ChooseVersionError, MAX_VERSIONS, PublishError},
};
use sha2::{Digest as _, Sha256};

use crate::MemoryStore;

/// The platforms, and the number of changes to them.
#[derive(Default)]
pub(crate) struct Platforms {
    records: BTreeMap<PlatformId, PlatformRecord>,
    revision: i64,
    /// The platforms of drafts that were prepared.
    of_drafts: BTreeSet<PlatformId>,
}

struct PlatformRecord {
    platform: Platform,
    /// In the order of their publication; the last one is the newest.
    definitions: Vec<PublishedDefinition>,
}

struct PublishedDefinition {
    version: DefinitionVersion,
    definition: Definition,
    at: DateTime<Utc>,
}

impl PlatformRecord {
    fn definition(&self, version: &str) -> Option<(DefinitionVersion, Definition)> {
        let mut all = self.definitions.iter();
        let found = all.find(|published| published.version.version == version)?;
        Some((found.version.clone(), found.definition.clone()))
    }
}

impl Platforms {
    pub(crate) const fn revision(&self) -> CatalogueRevision {
        CatalogueRevision(self.revision)
    }

    pub(crate) fn prepare_drafts(&mut self, id: PlatformId) {
        self.of_drafts.insert(id);
    }

    pub(crate) fn has(&self, id: PlatformId) -> bool {
        self.records.contains_key(&id) || self.of_drafts.contains(&id)
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
        canary: Option<CanaryShare>,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let id = self.number_of(&definition.platform);
        let before = self.records.get(&id);
        if before.is_some_and(|record| record.platform.environment != definition.environment) {
            return Err(PublishError::OtherEnvironment(definition.platform.clone()));
        }
        let mut definitions = before.into_iter().flat_map(|record| &record.definitions);
        match definitions.find(|other| other.version.version == pinned.version) {
            Some(other) if other.version != pinned => {
                return Err(PublishError::VersionTaken(pinned.version));
            }
            Some(_) => {
                let runs =
                    before.is_some_and(|record| record.platform.runs(&pinned.version, canary));
                return if runs {
                    Ok((id, pinned))
                } else {
                    Err(PublishError::AlreadyPublished(pinned.version))
                };
            }
            None => (),
        }
        let created_at = before.map_or(now, |record| record.platform.created_at);
        let platform = match (canary, before) {
            (Some(share), Some(record)) => {
                let canary = Some(Canary { version: pinned.version.clone(), share });
                Platform { canary, updated_at: now, ..record.platform.clone() }
            }
            (None, _) | (_, None) => shown(definition, id, created_at, now),
        };
        let fresh = || PlatformRecord { platform: platform.clone(), definitions: vec![] };
        let record = self.records.entry(id).or_insert_with(fresh);
        let (version, definition) = (pinned.clone(), definition.clone());
        record.definitions.push(PublishedDefinition { version, definition, at: now });
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
        canary: None,
        created_at,
        updated_at,
    }
}

/// Returns the version of a definition and the hash of its content.
fn pin(definition: &Definition) -> Result<DefinitionVersion, StoreError> {
    let document = serde_json_canonicalizer::to_vec(definition)
        .map_err(|error| StoreError::new("write a definition", error))?;
    let hash = Sha256::digest(document);
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
        let record = catalogue.records.get(&id);
        Ok(record.and_then(|record| record.definition(&record.platform.version)))
    }

    async fn definition_of(
        &self,
        session: &Session,
    ) -> Result<Option<(DefinitionVersion, Definition)>, StoreError> {
        let catalogue = &self.state().catalogue;
        let Some(record) = catalogue.records.get(&session.terms.platform) else { return Ok(None) };
        let platform = &record.platform;
        let canary = platform.canary.as_ref().filter(|canary| canary.share.includes(session.id));
        let version = match (&session.workflow, canary) {
            (Some(workflow), _) => &workflow.version,
            (None, Some(canary)) => &canary.version,
            (None, None) => &platform.version,
        };
        Ok(record.definition(version))
    }

    async fn versions(&self, id: PlatformId) -> Result<Vec<PublishedVersion>, StoreError> {
        let catalogue = &self.state().catalogue;
        let all = catalogue.records.get(&id).into_iter().flat_map(|record| &record.definitions);
        let versions = all.rev().take(MAX_VERSIONS.into()).map(|published| PublishedVersion {
            definition: published.version.clone(),
            published_at: published.at,
        });
        Ok(versions.collect())
    }

    async fn publish(
        &self,
        definition: &Definition,
        canary: Option<CanaryShare>,
        now: DateTime<Utc>,
    ) -> Result<(PlatformId, DefinitionVersion), PublishError> {
        let pinned = pin(definition)?;
        self.state().catalogue.publish(definition, pinned, canary, now)
    }

    async fn choose_version(
        &self,
        id: PlatformId,
        change: &VersionChange,
        now: DateTime<Utc>,
    ) -> Result<(), ChooseVersionError> {
        let ActiveVersions { version, canary } = &change.to;
        let version = version.as_str();
        let catalogue = &mut self.state().catalogue;
        let record = catalogue.records.get_mut(&id).ok_or(ChooseVersionError::NoPlatform(id))?;
        let tried = canary.as_ref().map(|canary| canary.version.as_str());
        let wanted = [Some(version), tried];
        let unknown = wanted.into_iter().flatten().find(|one| record.definition(one).is_none());
        if let Some(unknown) = unknown {
            return Err(ChooseVersionError::NotPublished(unknown.to_owned()));
        }
        let from = change.from.as_ref();
        if from.is_some_and(|from| *from != record.platform.active_versions()) {
            return Err(ChooseVersionError::Changed);
        }
        if let Some((_, definition)) = record.definition(version) {
            let (canary, created_at) = (canary.clone(), record.platform.created_at);
            let chosen = shown(&definition, id, created_at, now);
            record.platform = Platform { canary, is_active: record.platform.is_active, ..chosen };
        }
        catalogue.revision = catalogue.revision.saturating_add(1);
        Ok(())
    }
}
