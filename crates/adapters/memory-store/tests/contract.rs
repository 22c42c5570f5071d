//! The contract of all stores, for the in-memory store.

use std::sync::Arc;

use memory_store::MemoryStore;
use testkit::contract::Backend;

testkit::stores_contract!(std::future::ready(backend()));

/// Returns one store as every port. An in-memory store belongs to one process, so the audit log of
/// a second process is the same store.
fn backend() -> Backend {
    let store = Arc::new(MemoryStore::new());
    Backend {
        sessions: store.clone(),
        partner_sessions: store.clone(),
        team_sessions: store.clone(),
        leases: store.clone(),
        session_retention: store.clone(),
        devices: store.clone(),
        outbox: store.clone(),
        instances: store.clone(),
        regions: store.clone(),
        deliveries: store.clone(),
        log: store.clone(),
        other_log: store.clone(),
        attestations: store.clone(),
        recordings: store.clone(),
        notifications: store.clone(),
        teams: store.clone(),
        keys: store.clone(),
        key_verification: store.clone(),
        users: store.clone(),
        subjects: store.clone(),
        members: store.clone(),
        second_factors: store.clone(),
        sign_ins: store.clone(),
        held_forms: store.clone(),
        passkeys: store.clone(),
        browsers: store.clone(),
        account_links: store.clone(),
        notices: store.clone(),
        invitations: store.clone(),
        audit: store.clone(),
        contacts: store.clone(),
        templates: store.clone(),
        brands: store.clone(),
        drafts: store.clone(),
        suppressions: store.clone(),
        webhooks: store.clone(),
        catalogue: store.clone(),
        statistics: store,
        guard: Box::new(()),
    }
}
