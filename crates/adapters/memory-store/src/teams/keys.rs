//! Teams and their API keys.

use std::cmp::Reverse;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, KeyHash},
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, TeamId},
};
use ports::{
    StoreError,
    catalogue::CatalogueRevision,
    key_store::{KeyStore, KeyVerification, StoredKey, TeamStore},
};

use super::{KeyRecord, Team, Teams};
use crate::MemoryStore;

impl Teams {
    /// Returns a key's record unless it is revoked.
    fn live_key(&mut self, id: ApiKeyId) -> Option<&mut KeyRecord> {
        self.keys.get_mut(&id).filter(|record| record.kept.key.revoked_at.is_none())
    }
}

#[async_trait]
impl TeamStore for MemoryStore {
    async fn add_team(&self, id: TeamId, name: &str, _: DateTime<Utc>) -> Result<(), StoreError> {
        let teams = &mut self.state().teams;
        if teams.has(id) {
            return Err(StoreError::new("add a team", "the team exists already"));
        }
        teams.records.insert(id, Team { name: name.to_owned(), ..Team::default() });
        Ok(())
    }

    async fn has_team(&self, id: TeamId) -> Result<bool, StoreError> {
        Ok(self.state().teams.has(id))
    }

    async fn set_frame_ancestors(
        &self,
        id: TeamId,
        ancestors: &[FrameAncestor],
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let Some(team) = teams.team_mut(id) else { return Ok(false) };
        team.ancestors = ancestors.to_vec();
        Ok(true)
    }

    async fn frame_ancestors(&self, id: TeamId) -> Result<Vec<FrameAncestor>, StoreError> {
        Ok(self.state().teams.ancestors(id))
    }

    async fn set_other_regions(&self, id: TeamId, allowed: bool) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let Some(team) = teams.team_mut(id) else { return Ok(false) };
        team.other_regions = allowed;
        Ok(true)
    }

    async fn other_regions(&self, id: TeamId) -> Result<bool, StoreError> {
        Ok(self.state().teams.team(id).is_some_and(|team| team.other_regions))
    }
}

#[async_trait]
impl KeyStore for MemoryStore {
    async fn add_key(
        &self,
        key: &ApiKey,
        hash: &KeyHash,
        label: &str,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const ACTION: &str = "add a key";
        let teams = &mut self.state().teams;
        teams.require(key.team, ACTION)?;
        if teams.has_key(key.id) || teams.key_by_hash(hash).is_some() {
            return Err(StoreError::new(ACTION, "the key exists already"));
        }
        let label = label.to_owned();
        let kept = StoredKey { key: key.clone(), label, created_at: now, used_at: None };
        teams.keys.insert(key.id, KeyRecord { kept, hash: hash.clone() });
        Ok(())
    }

    async fn keys(&self, team: TeamId) -> Result<Vec<StoredKey>, StoreError> {
        let teams = &self.state().teams;
        let theirs = teams.keys.values().filter(|record| record.kept.key.team == team);
        let mut keys: Vec<_> = theirs.map(|record| record.kept.clone()).collect();
        keys.sort_by_key(|kept| Reverse((kept.created_at, kept.key.id)));
        Ok(keys)
    }

    async fn key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.state().teams.keys.get(&id).map(|record| record.kept.key.clone()))
    }

    async fn rotate_key(&self, id: ApiKeyId, hash: &KeyHash) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let holder = teams.key_by_hash(hash).map(|key| key.id);
        let Some(record) = teams.live_key(id) else { return Ok(false) };
        if holder.is_some_and(|holder| holder != id) {
            return Err(StoreError::new("rotate a key", "another record has this key"));
        }
        record.hash = hash.clone();
        Ok(true)
    }

    async fn revoke_key(&self, id: ApiKeyId, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let Some(record) = teams.live_key(id) else { return Ok(false) };
        record.kept.key.revoked_at = Some(now);
        Ok(true)
    }
}

#[async_trait]
impl KeyVerification for MemoryStore {
    async fn key_by_hash(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError> {
        let state = self.state();
        let key = state.teams.key_by_hash(hash).cloned();
        Ok(key.map(|key| (key, state.catalogue.revision())))
    }

    async fn record_key_uses(&self, uses: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError> {
        let teams = &mut self.state().teams;
        for (id, at) in uses {
            if let Some(record) = teams.keys.get_mut(id) {
                record.kept.used_at = record.kept.used_at.max(Some(*at));
            }
        }
        Ok(())
    }
}

impl Teams {
    /// Returns the origins that may show a team's sessions in a frame; none if the team does not
    /// exist.
    pub(crate) fn ancestors(&self, id: TeamId) -> Vec<FrameAncestor> {
        self.team(id).map(|team| team.ancestors.clone()).unwrap_or_default()
    }
}
