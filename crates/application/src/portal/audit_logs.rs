//! Reading and verifying the audit log of a team.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{account::Permission, audit::AuditEntry, id::TeamId};
use ports::{
    audit_log::AuditLog,
    driving::{AuditCheck, AuditService, PortalError, SignedInUser},
};

use crate::digest::sha256;

/// The entries that are read at once.
const ENTRY_BATCH: u16 = 1000;

/// Implements [`AuditService`].
pub struct AuditLogs {
    pub log: Arc<dyn AuditLog>,
}

#[async_trait]
impl AuditService for AuditLogs {
    async fn audit(
        &self,
        user: &SignedInUser,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, PortalError> {
        user.require(Permission::ManageTeam)?;
        Ok(self.log.entries(user.team, before, limit.min(ENTRY_BATCH)).await?)
    }

    async fn verify_audit(&self, user: &SignedInUser) -> Result<AuditCheck, PortalError> {
        user.require(Permission::ManageTeam)?;
        let team = user.team;
        let mut check = AuditCheck { entries: 0, last: None, broken: None };
        let mut later: Option<AuditEntry> = None;
        loop {
            let before = later.as_ref().map(|entry| entry.number);
            let entries = self.log.entries(team, before, ENTRY_BATCH).await?;
            let is_last = entries.len() < usize::from(ENTRY_BATCH);
            // `None` stands before the first entry, which follows from nothing.
            for entry in entries.into_iter().map(Some).chain(is_last.then_some(None)) {
                if let Some(later) = &later
                    && !follows(team, entry.as_ref(), later)
                {
                    check.broken = check.broken.or(Some(later.number));
                }
                let Some(entry) = entry else { return Ok(check) };
                check.entries += 1;
                check.last.get_or_insert_with(|| entry.clone());
                later = Some(entry);
            }
        }
    }
}

/// Returns whether an entry follows directly from another, or from nothing as the first one.
fn follows(team: TeamId, before: Option<&AuditEntry>, entry: &AuditEntry) -> bool {
    let (number, hash) = before.map_or((0, [0; 32]), |before| (before.number, before.hash));
    let text = entry.event.text(team, entry.number);
    entry.number == number + 1 && entry.hash == sha256(&[&hash, text.as_bytes()].concat())
}
