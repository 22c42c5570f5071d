//! The audit log of each team, in which each entry carries the hash of all before it.

use async_trait::async_trait;
use domain::{
    audit::{AuditEntry, AuditEvent},
    id::TeamId,
};
use ports::{StoreError, audit_log::AuditLog};
use sha2::{Digest as _, Sha256};

use super::no_team;
use crate::MemoryStore;

/// Returns the entry that follows `last`.
fn following(last: Option<&AuditEntry>, team: TeamId, event: &AuditEvent) -> AuditEntry {
    let (number, before) = last.map_or((0, [0; 32]), |last| (last.number, last.hash));
    let number = number.saturating_add(1);
    let hash = Sha256::new().chain_update(before).chain_update(event.text(team, number)).finalize();
    AuditEntry { number, event: event.clone(), hash: hash.into() }
}

#[async_trait]
impl AuditLog for MemoryStore {
    async fn note(&self, team: TeamId, event: &AuditEvent) -> Result<(), StoreError> {
        let teams = &mut self.state().teams;
        let log = teams.team_mut(team).ok_or_else(|| no_team("add an audit entry"))?;
        let entry = following(log.audit.last(), team, event);
        log.audit.push(entry);
        Ok(())
    }

    async fn entries(
        &self,
        team: TeamId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let teams = &self.state().teams;
        let entries = teams.team(team).into_iter().flat_map(|team| team.audit.iter().rev());
        let earlier = entries.filter(|entry| before.is_none_or(|before| entry.number < before));
        Ok(earlier.take(limit.into()).cloned().collect())
    }
}
