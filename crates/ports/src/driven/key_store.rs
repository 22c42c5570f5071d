//! The store of teams and their API keys.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, KeyHash},
    frame_ancestors::FrameAncestor,
    id::{ApiKeyId, TeamId},
};

use crate::{StoreError, catalogue::CatalogueRevision};

/// A key's record, as its team sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub key: ApiKey,
    /// The name that the team gave the key.
    pub label: String,
    pub created_at: DateTime<Utc>,
    /// The time of the last use, to the minute.
    pub used_at: Option<DateTime<Utc>>,
}

/// Stores teams, and the origins that may embed their sessions.
#[async_trait]
pub trait TeamStore: Send + Sync {
    async fn add_team(&self, id: TeamId, name: &str, now: DateTime<Utc>) -> Result<(), StoreError>;

    async fn has_team(&self, id: TeamId) -> Result<bool, StoreError>;

    /// Sets the origins whose pages may embed the team's sessions; an empty list allows any origin.
    /// Returns `false` if there is no such team.
    async fn set_frame_ancestors(
        &self,
        id: TeamId,
        ancestors: &[FrameAncestor],
    ) -> Result<bool, StoreError>;

    /// Returns the origins whose pages may embed the team's sessions; empty if any origin may, or if
    /// there is no such team.
    async fn frame_ancestors(&self, id: TeamId) -> Result<Vec<FrameAncestor>, StoreError>;

    /// Sets whether the team's sessions may have browsers in another region while their own is full.
    /// Returns `false` if there is no such team.
    async fn set_other_regions(&self, id: TeamId, allowed: bool) -> Result<bool, StoreError>;

    /// Returns whether the team's sessions may have browsers in another region; `false` for a team that
    /// has not allowed it, or does not exist.
    async fn other_regions(&self, id: TeamId) -> Result<bool, StoreError>;
}

/// Stores the API keys of teams.
#[async_trait]
pub trait KeyStore: Send + Sync {
    async fn add_key(
        &self,
        key: &ApiKey,
        hash: &KeyHash,
        label: &str,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Returns a team's keys, the newest first.
    async fn keys(&self, team: TeamId) -> Result<Vec<StoredKey>, StoreError>;

    async fn key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, StoreError>;

    /// Replaces the key of a record; the earlier key is invalid from then on. Returns `false` if
    /// the record does not exist or is revoked.
    async fn rotate_key(&self, id: ApiKeyId, hash: &KeyHash) -> Result<bool, StoreError>;

    /// Revokes a key. Returns `false` if the record does not exist or is already revoked.
    async fn revoke_key(&self, id: ApiKeyId, now: DateTime<Utc>) -> Result<bool, StoreError>;
}

/// Looks keys up for requests, and records their uses.
#[async_trait]
pub trait KeyVerification: Send + Sync {
    /// Returns the record whose key has this hash, revoked and expired ones included, and the
    /// catalogue's revision at the same moment.
    async fn key_by_hash(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError>;

    /// Records when keys were last used; a time before the stored one changes nothing.
    async fn record_key_uses(&self, uses: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError>;
}
