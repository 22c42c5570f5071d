//! Where it is written down what people did in the portal.

use async_trait::async_trait;
use domain::{
    audit::{AuditEntry, AuditEvent},
    id::TeamId,
};

use crate::StoreError;

/// Keeps for each team a list of what was done, in which each entry carries the hash of all before
/// it. Entries are added at the end and never change.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds an entry. Two at once MUST get two numbers, and the later one the hash of the earlier.
    async fn note(&self, team: TeamId, deed: &AuditEvent) -> Result<(), StoreError>;

    /// Up to `limit` entries before a number, the newest first.
    async fn entries(
        &self,
        team: TeamId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
