//! Every store port in memory, so that use cases can be tested without a database.
//!
//! [`MemoryStore`] passes the contract of all stores (`testkit::stores_contract!`). It is
//! deterministic: it takes each moment from its caller, its own identifiers count upwards, and
//! records of equal rank are sorted by identifier. As PostgreSQL does, it refuses a second record
//! with the same identifier and a reference to a record that does not exist (a session needs its
//! key and platform, a key its team).
//!
//! **Invariant:** each method takes the lock once and awaits nothing, so that a dropped future
//! leaves no half of a change.

mod accounts;
mod attestations;
mod catalogue;
mod definition_statistics;
mod deliveries;
mod ids;
mod instances;
mod notifications;
mod schedule;
mod sessions;
mod teams;

use std::sync::{Mutex, MutexGuard, PoisonError};

use ports::Reencrypted;

use crate::{
    accounts::AccountState, attestations::AttestationState, catalogue::Platforms,
    definition_statistics::StatisticsRecords, deliveries::Deliveries, ids::IdSequence,
    instances::Instances, notifications::Notifications, sessions::Sessions, teams::Teams,
};

/// A store that keeps everything in memory, unencrypted, until it is dropped.
///
/// A test that simulates several processes shares one store behind an [`Arc`](std::sync::Arc).
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the state. A poisoned lock is used as well: every check that can fail precedes the
    /// first change, so a panic leaves no partial change.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All records, by their consumer.
#[derive(Default)]
struct State {
    ids: IdSequence,
    accounts: AccountState,
    attestations: AttestationState,
    catalogue: Platforms,
    deliveries: Deliveries,
    instances: Instances,
    notifications: Notifications,
    sessions: Sessions,
    statistics: StatisticsRecords,
    teams: Teams,
}

/// Returns the result of re-encrypting a page of records, none of which is encrypted here. `ids`
/// are in ascending order.
fn resealed<Id: Copy + Ord>(
    ids: impl Iterator<Item = Id>,
    after: Option<Id>,
    limit: u16,
) -> Reencrypted<Id> {
    let page = ids.filter(|id| after.is_none_or(|after| *id > after));
    let page: Vec<_> = page.take(limit.into()).collect();
    let next = page.last().copied().filter(|_| page.len() >= usize::from(limit));
    Reencrypted { changed: 0, unreadable: vec![], next }
}
