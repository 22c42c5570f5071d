//! The log of members' actions in the portal.

use async_trait::async_trait;
use domain::{
    audit::{AuditEntry, AuditEvent},
    id::TeamId,
};

use crate::StoreError;

/// Stores a log for each team. Each entry contains the hash of the previous one. Entries are
/// appended and never change.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Appends an entry. Two concurrent calls MUST get different numbers, and the later entry the
    /// hash of the earlier one.
    async fn note(&self, team: TeamId, event: &AuditEvent) -> Result<(), StoreError>;

    /// Returns up to `limit` entries before a number, the newest first.
    async fn entries(
        &self,
        team: TeamId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
