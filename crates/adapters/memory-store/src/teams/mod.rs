//! Teams with their keys, contacts, templates, brands and audit logs.

mod audit;
mod brands;
mod contacts;
mod drafts;
mod keys;
mod templates;

use std::collections::BTreeMap;

use domain::{
    api_key::{ApiKey, KeyHash},
    audit::AuditEntry,
    branding::Brand,
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, ContactId, DraftId, TeamId, TemplateId},
};
use ports::{
    StoreError,
    authoring::{Draft, DraftContent},
    contact_store::StoredContact,
    key_store::StoredKey,
    template_store::StoredTemplate,
};

/// The records of all teams.
#[derive(Default)]
pub(crate) struct Teams {
    records: BTreeMap<TeamId, Team>,
    keys: BTreeMap<ApiKeyId, KeyRecord>,
    contacts: BTreeMap<ContactId, StoredContact>,
    drafts: BTreeMap<DraftId, (Draft, DraftContent)>,
    templates: BTreeMap<TemplateId, StoredTemplate>,
    /// The greatest template number in use so far; a number is not used twice.
    last_template: i32,
}

#[derive(Default)]
pub(crate) struct Team {
    pub(crate) name: String,
    /// Whether all members have to have a second factor.
    pub(crate) needs_second_factor: bool,
    ancestors: Vec<FrameAncestor>,
    /// Whether sessions may have browsers in another region.
    pub(crate) other_regions: bool,
    brand: Brand,
    /// In the order of their numbers.
    audit: Vec<AuditEntry>,
}

struct KeyRecord {
    kept: StoredKey,
    hash: KeyHash,
}

impl Teams {
    pub(crate) fn has(&self, id: TeamId) -> bool {
        self.records.contains_key(&id)
    }

    pub(crate) fn team(&self, id: TeamId) -> Option<&Team> {
        self.records.get(&id)
    }

    pub(crate) fn team_mut(&mut self, id: TeamId) -> Option<&mut Team> {
        self.records.get_mut(&id)
    }

    /// Refuses a reference to a team that does not exist.
    pub(crate) fn require(&self, id: TeamId, action: &'static str) -> Result<(), StoreError> {
        if self.has(id) { Ok(()) } else { Err(no_team(action)) }
    }

    pub(crate) fn has_key(&self, id: ApiKeyId) -> bool {
        self.keys.contains_key(&id)
    }

    pub(crate) fn key_by_hash(&self, hash: &KeyHash) -> Option<&ApiKey> {
        let mut keys = self.keys.values();
        keys.find(|record| record.hash == *hash).map(|record| &record.kept.key)
    }

    /// Returns the team that a key belongs to.
    pub(crate) fn team_of(&self, key: ApiKeyId) -> Option<TeamId> {
        self.keys.get(&key).map(|record| record.kept.key.team)
    }
}

fn no_team(action: &'static str) -> StoreError {
    StoreError::new(action, "there is no such team")
}
