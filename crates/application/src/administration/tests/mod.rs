//! The use cases of operators, on the in-memory store and on mocks.

mod attestations;
mod encryption;
mod platforms;
mod review;
mod teams;
mod trial;
mod users;

use std::sync::Arc;

use domain::id::TeamId;
use memory_store::MemoryStore;
use ports::{StoreError, audit_log::AuditLog, audit_log::MockAuditLog, key_store::TeamStore as _};
use testkit::{clock::FakeClock, sample::noon};
use uuid::Uuid;

use super::OperatorAudit;
use crate::testing::Counting;

const TEAM: TeamId = TeamId::from_uuid(Uuid::from_u128(0xA));
const UNKNOWN_TEAM: TeamId = TeamId::from_uuid(Uuid::from_u128(0xB));

/// A store with one team.
struct Fixture {
    store: Arc<MemoryStore>,
    audit: OperatorAudit,
    clock: Arc<FakeClock>,
    random: Arc<Counting>,
}

impl Fixture {
    async fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        store.add_team(TEAM, "Lender", noon()).await.unwrap();
        let clock = Arc::new(FakeClock::at(noon()));
        let audit = OperatorAudit { log: store.clone(), clock: clock.clone() };
        Self { store, audit, clock, random: Arc::default() }
    }

    /// Returns the same store with an audit log that fails.
    fn with_broken_audit_log(self) -> Self {
        let mut log = MockAuditLog::new();
        log.expect_note().returning(|_, _| Err(broken()));
        let audit = OperatorAudit { log: Arc::new(log), clock: self.clock.clone() };
        Self { audit, ..self }
    }

    /// Returns the actors, actions and subjects in the log of the team, the oldest first.
    async fn audited(&self) -> Vec<String> {
        let entries = self.store.entries(TEAM, None, 100).await.unwrap();
        let lines = entries.into_iter().rev().map(|entry| {
            let event = entry.event;
            format!("{}: {} {}", event.actor, event.action, event.subject).trim_end().to_owned()
        });
        lines.collect()
    }
}

fn broken() -> StoreError {
    StoreError::new("write", "the disk is full")
}
