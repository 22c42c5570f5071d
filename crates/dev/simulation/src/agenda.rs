//! The events of virtual time, earliest first.

use std::{cmp::Ordering, collections::BinaryHeap};

use chrono::{DateTime, Utc};

/// Events that are to happen. Of those with the same time, the one that was added first comes first.
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Entry<E>>,
    added: u64,
    longest: usize,
}

struct Entry<E> {
    at: DateTime<Utc>,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (DateTime<Utc>, u64) {
        (self.at, self.number)
    }
}

// The heap returns the greatest entry, which has to be the earliest.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), added: 0, longest: 0 }
    }
}

impl<E> Agenda<E> {
    pub(crate) fn add(&mut self, at: DateTime<Utc>, event: E) {
        self.heap.push(Entry { at, number: self.added, event });
        self.added = self.added.saturating_add(1);
        self.longest = self.longest.max(self.heap.len());
    }

    pub(crate) fn next(&mut self) -> Option<(DateTime<Utc>, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// Returns how many events were added.
    pub(crate) const fn added(&self) -> u64 {
        self.added
    }

    /// Returns how many events it had at most.
    pub(crate) const fn longest(&self) -> usize {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_in_the_order_of_their_times_and_then_of_their_addition() {
        let mut agenda = Agenda::default();
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        for (seconds, event) in [(2, "c"), (1, "a"), (3, "e"), (2, "d"), (1, "b")] {
            agenda.add(at(seconds), event);
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.next().map(|(_, event)| event)).collect();
        assert_eq!(order, ["a", "b", "c", "d", "e"]);
        assert_eq!((agenda.added(), agenda.longest()), (5, 5));
    }
}
