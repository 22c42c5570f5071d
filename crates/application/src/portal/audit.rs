//! The log of what was done in the portal, read and checked.

use async_trait::async_trait;
use domain::{account::Permission, audit::AuditEntry, id::TeamId};
use ports::driving::{AuditCheck, AuditService, PortalError, SignedInUser};

use super::People;
use crate::digest::sha256;

/// Entries that are read at once.
const BATCH: u16 = 1000;

#[async_trait]
impl AuditService for People {
    async fn audit(
        &self,
        visitor: &SignedInUser,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, PortalError> {
        visitor.require(Permission::Govern)?;
        Ok(self.audit.entries(visitor.team, before, limit.min(BATCH)).await?)
    }

    async fn verify_audit(&self, visitor: &SignedInUser) -> Result<AuditCheck, PortalError> {
        visitor.require(Permission::Govern)?;
        let team = visitor.team;
        let mut check = AuditCheck { entries: 0, last: None, broken: None };
        let mut later: Option<AuditEntry> = None;
        loop {
            let from = later.as_ref().map(|entry| entry.number);
            let entries = self.audit.entries(team, from, BATCH).await?;
            let ends = entries.len() < usize::from(BATCH);
            // The first one follows from nothing.
            for before in entries.into_iter().map(Some).chain(ends.then_some(None)) {
                if let Some(entry) = &later
                    && !follows(team, before.as_ref(), entry)
                {
                    check.broken = check.broken.or(Some(entry.number));
                }
                let Some(before) = before else { return Ok(check) };
                check.entries += 1;
                check.last.get_or_insert_with(|| before.clone());
                later = Some(before);
            }
        }
    }
}

/// Whether an entry is the one behind another, or the first.
fn follows(team: TeamId, before: Option<&AuditEntry>, entry: &AuditEntry) -> bool {
    let (number, hash) = before.map_or((0, [0; 32]), |before| (before.number, before.hash));
    let text = entry.event.text(team, entry.number);
    entry.number == number + 1 && entry.hash == sha256(&[&hash, text.as_bytes()].concat())
}
