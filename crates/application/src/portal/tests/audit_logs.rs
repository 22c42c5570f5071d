//! Reading the audit log of a team, and detecting that it was changed afterwards.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Role,
    audit::{AuditEntry, AuditEvent},
    id::TeamId,
};
use ports::{
    StoreError,
    audit_log::AuditLog,
    driving::{AuditCheck, AuditService as _, SignedInUser},
};
use testkit::sample::noon;

use super::fixture::{Fixture, OTHER_TEAM, TEAM};
use crate::portal::AuditLogs;

#[tokio::test]
async fn a_log_that_nobody_changed_is_whole() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let empty = AuditCheck { entries: 0, last: None, broken: None };
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    assert_eq!(verify(&fixture, &other, Vec::clear).await, empty);
    fill(&fixture, 2500).await;
    let check = verify(&fixture, &owner, |_| ()).await;
    let last = fixture.audit_logs().audit(&owner, None, 1).await.unwrap().remove(0);
    assert_eq!((check.entries, check.broken), (last.number, None));
    assert_eq!(check.last, Some(last));
}

#[tokio::test]
async fn a_changed_or_removed_entry_breaks_the_chain() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    fill(&fixture, 1500).await;
    let broken =
        async |change: fn(&mut Vec<AuditEntry>)| verify(&fixture, &owner, change).await.broken;
    assert_eq!(
        broken(|log| at(log, 700).event.actor = "eve@lender.example".into()).await,
        Some(700)
    );
    assert_eq!(broken(|log| at(log, 1).event.subject = "nothing".into()).await, Some(1));
    assert_eq!(broken(|log| log.retain(|entry| entry.number != 700)).await, Some(701));
    assert_eq!(broken(|log| log.retain(|entry| entry.number > 1)).await, Some(2), "the oldest");
    // A forger who recomputes the hash of an entry has to recompute those of all later entries.
    assert_eq!(broken(|log| at(log, 700).hash = [7; 32]).await, Some(701));
    let twice = |log: &mut Vec<AuditEntry>| {
        at(log, 20).event.action = "key.look".into();
        at(log, 1200).event.action = "key.look".into();
    };
    assert_eq!(broken(twice).await, Some(1200), "the newest one is reported");
}

#[tokio::test]
async fn an_entry_of_another_team_breaks_the_chain() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    let other = fixture.user_in(OTHER_TEAM, Role::Owner).await;
    let theirs = fixture.audit_logs().audit(&other, None, 10).await.unwrap();
    let logs = AuditLogs { log: Arc::new(Log { entries: theirs }) };
    assert_eq!(logs.verify_audit(&owner).await.unwrap().broken, Some(1));
    assert_eq!(logs.verify_audit(&other).await.unwrap().broken, None);
}

#[tokio::test]
async fn a_page_of_the_log_is_bounded() {
    let fixture = Fixture::new().await;
    let owner = fixture.user(Role::Owner).await;
    fill(&fixture, 1500).await;
    let logs = fixture.audit_logs();
    let page = logs.audit(&owner, None, u16::MAX).await.unwrap();
    assert_eq!(page.len(), 1000);
    let next = logs.audit(&owner, page.last().map(|entry| entry.number), 5).await.unwrap();
    assert_eq!(next[0].number, page[999].number - 1);
    assert_eq!(next.len(), 5);
}

/// Adds events to the log of the first team.
async fn fill(fixture: &Fixture, count: usize) {
    for number in 0..count {
        let event = AuditEvent::new(noon(), "ada@lender.example", "key.make", &number.to_string());
        fixture.audit.note(TEAM, &event).await.unwrap();
    }
}

/// Verifies the log of the user's team after somebody changed what is stored.
async fn verify(
    fixture: &Fixture,
    user: &SignedInUser,
    change: impl FnOnce(&mut Vec<AuditEntry>),
) -> AuditCheck {
    let mut entries = fixture.audit.entries(user.team, None, u16::MAX).await.unwrap();
    change(&mut entries);
    let logs = AuditLogs { log: Arc::new(Log { entries }) };
    logs.verify_audit(user).await.unwrap()
}

fn at(log: &mut [AuditEntry], number: i64) -> &mut AuditEntry {
    log.iter_mut().find(|entry| entry.number == number).expect("an entry")
}

/// A log with these entries, the newest first.
struct Log {
    entries: Vec<AuditEntry>,
}

#[async_trait]
impl AuditLog for Log {
    async fn note(&self, _: TeamId, _: &AuditEvent) -> Result<(), StoreError> {
        Err(StoreError::new("record an audit event", "this log is only read"))
    }

    async fn entries(
        &self,
        _: TeamId,
        before: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let is_before = |entry: &&AuditEntry| before.is_none_or(|before| entry.number < before);
        let entries = self.entries.iter().filter(is_before).take(limit.into());
        Ok(entries.cloned().collect())
    }
}
