//! What is counted while the simulation runs.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{
    error_code::ErrorCode,
    session::{Session, Status},
};

use crate::{endpoints::Delivery, histogram::Histogram, level::Level, numbers::float};

/// Counts, times and levels.
pub(crate) struct Tally {
    pub(crate) created: u64,
    pub(crate) opened: u64,
    /// Closed sessions by status and error code.
    pub(crate) outcomes: BTreeMap<(&'static str, &'static str), u64>,
    /// Events that the session's state did not allow.
    pub(crate) rejected: u64,
    /// Sessions that are not closed.
    pub(crate) open: Level,
    /// Slots that are taken, until the browser is released.
    pub(crate) slots: Level,
    /// Sessions that have asked for a browser and have no slot.
    pub(crate) waiting: Level,
    pub(crate) waits: Histogram,
    /// Those of the team with most sessions, and of all others.
    pub(crate) waits_of_largest: Histogram,
    pub(crate) waits_of_others: Histogram,
    pub(crate) holds: Histogram,
    /// From the opening of the link to the platform's page.
    pub(crate) first_pages: Histogram,
    pub(crate) refused_full: u64,
    pub(crate) refused_late: u64,
    pub(crate) left_queue: u64,
    pub(crate) overtaken: u64,
    pub(crate) over_capacity: u64,
    pub(crate) turns_given_back: u64,
    pub(crate) failed_starts: u64,
    pub(crate) longest_place: u64,
    pub(crate) relayed: u64,
    pub(crate) moved: u64,
    pub(crate) crashes: u64,
    pub(crate) browsers_lost: u64,
    pub(crate) longest_due: u64,
    pub(crate) most_live: u64,
    pub(crate) connected_seconds: f64,
    /// Deliveries that sessions caused.
    pub(crate) owed: u64,
    pub(crate) delivered: u64,
    pub(crate) exhausted: u64,
    /// Deliveries that an endpoint has accepted more than once.
    pub(crate) duplicated: u64,
    pub(crate) calls: u64,
    pub(crate) results_lost: u64,
    pub(crate) delivery_times: Histogram,
    pub(crate) longest_backlog: u64,
    looks: u64,
    running_seen: u64,
    waiting_seen: u64,
}

impl Tally {
    pub(crate) fn new(start: DateTime<Utc>) -> Self {
        Self {
            created: 0,
            opened: 0,
            outcomes: BTreeMap::new(),
            rejected: 0,
            open: Level::new(start),
            slots: Level::new(start),
            waiting: Level::new(start),
            waits: Histogram::default(),
            waits_of_largest: Histogram::default(),
            waits_of_others: Histogram::default(),
            holds: Histogram::default(),
            first_pages: Histogram::default(),
            refused_full: 0,
            refused_late: 0,
            left_queue: 0,
            overtaken: 0,
            over_capacity: 0,
            turns_given_back: 0,
            failed_starts: 0,
            longest_place: 0,
            relayed: 0,
            moved: 0,
            crashes: 0,
            browsers_lost: 0,
            longest_due: 0,
            most_live: 0,
            connected_seconds: 0.0,
            owed: 0,
            delivered: 0,
            exhausted: 0,
            duplicated: 0,
            calls: 0,
            results_lost: 0,
            delivery_times: Histogram::default(),
            longest_backlog: 0,
            looks: 0,
            running_seen: 0,
            waiting_seen: 0,
        }
    }

    /// Counts a closed session.
    pub(crate) fn ended(&mut self, session: &Session) {
        let code = session.state.error_code().map_or("", ErrorCode::as_str);
        let counted = self.outcomes.entry((Status::as_str(session.status()), code)).or_default();
        *counted = counted.saturating_add(1);
    }

    /// Ends the wait of a session for a slot.
    pub(crate) fn waited(&mut self, team: u32, since: DateTime<Utc>, now: DateTime<Utc>) {
        self.waiting.subtract(now);
        self.waits.record(now - since);
        let of_team =
            if team == 0 { &mut self.waits_of_largest } else { &mut self.waits_of_others };
        of_team.record(now - since);
    }

    pub(crate) fn delivered(&mut self, delivery: Delivery, now: DateTime<Utc>) {
        self.delivered = self.delivered.saturating_add(1);
        self.duplicated = self.duplicated.saturating_add(u64::from(delivery.accepted > 1));
        self.delivery_times.record(now - delivery.created_at);
    }

    /// Notes how long the queues are.
    pub(crate) fn look(&mut self, running: u64, waiting: u64, backlog: u64) {
        self.looks = self.looks.saturating_add(1);
        self.running_seen = self.running_seen.saturating_add(running);
        self.waiting_seen = self.waiting_seen.saturating_add(waiting);
        self.longest_backlog = self.longest_backlog.max(backlog);
    }

    /// Returns how many sessions had a turn, and how many waited for one, on average over the looks.
    pub(crate) fn means_seen(&self) -> (f64, f64) {
        let looks = float(self.looks.max(1));
        (float(self.running_seen) / looks, float(self.waiting_seen) / looks)
    }
}
