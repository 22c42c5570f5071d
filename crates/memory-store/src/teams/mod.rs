//! Teams with their keys.

mod keys;

use std::collections::BTreeMap;

use domain::{
    ancestors::Ancestor,
    api_key::{ApiKey, KeyHash},
    id::{ApiKeyId, TeamId},
};
use ports::{StoreError, key_store::KeptKey};

/// The records of all teams.
#[derive(Default)]
pub(crate) struct Teams {
    records: BTreeMap<TeamId, Team>,
    keys: BTreeMap<ApiKeyId, KeyRecord>,
}

#[derive(Default)]
pub(crate) struct Team {
    ancestors: Vec<Ancestor>,
}

struct KeyRecord {
    kept: KeptKey,
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
