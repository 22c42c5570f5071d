//! Schedules of queue entries that processes lease: when they are due, and the fence against a lost claim.

use chrono::{DateTime, TimeDelta, Utc};

/// When an entry of a queue is due, and how often it was claimed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) due: DateTime<Utc>,
    /// The number of claims so far; a claim is held while this is its own number.
    pub(crate) attempt: i32,
}

impl Schedule {
    pub(crate) const fn due_at(due: DateTime<Utc>) -> Self {
        Self { due, attempt: 0 }
    }

    pub(crate) fn is_due(&self, now: DateTime<Utc>) -> bool {
        self.due <= now
    }

    /// Leases the entry and returns the number of the attempt, counted from 1.
    pub(crate) fn claim(&mut self, now: DateTime<Utc>, lease: TimeDelta) -> i32 {
        self.due = now + lease;
        self.attempt = self.attempt.saturating_add(1);
        self.attempt
    }
}

/// Returns the keys of up to `limit` items, the earliest first and ties by key.
pub(crate) fn earliest<K: Ord>(
    items: impl Iterator<Item = (DateTime<Utc>, K)>,
    limit: u16,
) -> Vec<K> {
    let mut items: Vec<_> = items.collect();
    items.sort_unstable();
    items.truncate(limit.into());
    items.into_iter().map(|(_, key)| key).collect()
}
