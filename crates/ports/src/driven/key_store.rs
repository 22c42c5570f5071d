//! Where teams and their API keys are kept.

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
    /// What its team calls it.
    pub label: String,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub used_at: Option<DateTime<Utc>>,
}

#[async_trait]
pub trait KeyStore: Send + Sync {
    async fn add_team(&self, id: TeamId, name: &str, now: DateTime<Utc>) -> Result<(), StoreError>;

    async fn has_team(&self, id: TeamId) -> Result<bool, StoreError>;

    /// Says whose pages may show the team's sessions; empty: anybody's. `false`: there is no such
    /// team.
    async fn set_frame_ancestors(
        &self,
        id: TeamId,
        ancestors: &[FrameAncestor],
    ) -> Result<bool, StoreError>;

    /// Whose pages may show the team's sessions; empty: anybody's, or there is no such team.
    async fn frame_ancestors(&self, id: TeamId) -> Result<Vec<FrameAncestor>, StoreError>;

    async fn add_key(
        &self,
        key: &ApiKey,
        hash: &KeyHash,
        label: &str,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// A team's keys, the newest first.
    async fn keys(&self, team: TeamId) -> Result<Vec<StoredKey>, StoreError>;

    /// Notes when keys were last used; a moment before the one that is known changes nothing.
    async fn record_key_uses(&self, uses: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError>;

    /// The record whose key has this hash, revoked and expired ones included, and the catalogue's
    /// revision at the same moment.
    async fn key_by_hash(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError>;

    async fn key(&self, id: ApiKeyId) -> Result<Option<ApiKey>, StoreError>;

    /// Gives a record another key; the one before opens nothing from then on. `false`: there is
    /// no such record, or it is revoked.
    async fn rotate_key(&self, id: ApiKeyId, hash: &KeyHash) -> Result<bool, StoreError>;

    /// `false`: there is no such record, or it is revoked already.
    async fn revoke_key(&self, id: ApiKeyId, now: DateTime<Utc>) -> Result<bool, StoreError>;
}
