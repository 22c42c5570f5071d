//! What a simulated day has shown, as values and as text.

use std::{collections::BTreeMap, fmt};

use crate::{
    histogram::Percentiles,
    level::HourlyLevel,
    numbers::{count, float, ratio},
    simulation::Simulation,
    writes::{SampledBytes, Write},
};

const DAY_SECONDS: f64 = 86_400.0;

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub created: u64,
    pub opened: u64,
    /// Closed sessions by status and error code, which is empty where there is none.
    pub outcomes: BTreeMap<(&'static str, &'static str), u64>,
    /// Sessions that were not closed when nothing was left to happen; must be 0.
    pub never_ended: u64,
    /// Events that a session's state did not allow; must be 0.
    pub rejected_events: u64,
    pub slots: u64,
    pub instances: u64,
    pub queue: QueueReport,
    pub deliveries: DeliveryReport,
    pub store: StoreReport,
    pub crashes: u64,
    pub browsers_lost: u64,
    /// Sessions that began at another instance than the one that their applicant reached.
    pub relayed: u64,
    /// How often a session that waited was moved to another instance.
    pub moved: u64,
    /// The longest queue of the sweeper.
    pub longest_due: u64,
    /// The most open sessions at once, and those of them whose link was opened.
    pub most_open: u64,
    pub most_live: u64,
    /// Events of the simulation itself, and the most that were planned at once.
    pub events: u64,
    pub most_planned: u64,
}

/// The wait for browsers, and their use.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueReport {
    /// How long sessions waited for a slot, those that gave up included.
    pub waits: Percentiles,
    /// Those of the team with most sessions, and of all other teams.
    pub waits_of_largest: Percentiles,
    pub waits_of_others: Percentiles,
    /// From the opening of the link to the platform's page.
    pub first_pages: Percentiles,
    /// How long slots were held.
    pub holds: Percentiles,
    pub refused_full: u64,
    pub refused_late: u64,
    /// Applicants who left the page before they had a browser.
    pub left: u64,
    /// Turns that were given back since a browser that had ended still occupied its slot.
    pub turns_given_back: u64,
    pub failed_starts: u64,
    pub longest_place: u64,
    pub most_waiting: u64,
    pub most_slots: u64,
    /// Sessions that came before another one of their tenant that had waited for longer; must be 0.
    pub overtaken: u64,
    /// How often an instance had more browsers than slots; must be 0.
    pub over_capacity: u64,
    pub slots_by_hour: Vec<HourlyLevel>,
    pub waiting_by_hour: Vec<HourlyLevel>,
    pub running: LittlesLaw,
    pub waiting: LittlesLaw,
}

/// A mean number of sessions, found in two ways that do not depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LittlesLaw {
    /// The mean of the numbers that the queues themselves told at regular times.
    pub seen: f64,
    /// The rate of arrivals times the mean time, by Little's law.
    pub expected: f64,
}

/// The deliveries.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryReport {
    pub owed: u64,
    pub delivered: u64,
    pub exhausted: u64,
    /// Neither delivered nor exhausted when nothing was left to happen; must be 0.
    pub lost: u64,
    /// Accepted by the endpoint more than once, since an instance crashed before it stored the result.
    pub duplicated: u64,
    pub calls: u64,
    pub results_lost: u64,
    /// From the end of the session to the stored result.
    pub times: Percentiles,
    pub longest_backlog: u64,
}

/// What the store was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreReport {
    pub rows: BTreeMap<Write, u64>,
    /// Transactions that save a creation or a transition.
    pub changes: u64,
    pub bytes: SampledBytes,
    /// The sum of the times for which applicants were connected, in seconds.
    pub connected_seconds: f64,
}

impl Report {
    pub(crate) fn of(simulation: &Simulation<'_>) -> Self {
        let (tally, agenda) = (&simulation.tally, &simulation.agenda);
        let deployment = &simulation.parameters.deployment;
        let ended: u64 = tally.outcomes.values().sum();
        Self {
            created: tally.created,
            opened: tally.opened,
            outcomes: tally.outcomes.clone(),
            never_ended: tally.created.saturating_sub(ended),
            rejected_events: tally.rejected,
            slots: count(deployment.instances.saturating_mul(deployment.quotas.total)),
            instances: count(deployment.instances),
            queue: QueueReport::of(simulation),
            deliveries: DeliveryReport {
                owed: tally.owed,
                delivered: tally.delivered,
                exhausted: tally.exhausted,
                lost: tally.owed.saturating_sub(tally.delivered.saturating_add(tally.exhausted)),
                duplicated: tally.duplicated,
                calls: tally.calls,
                results_lost: tally.results_lost,
                times: tally.delivery_times.percentiles(),
                longest_backlog: tally.longest_backlog,
            },
            store: StoreReport {
                rows: simulation.writes.rows().clone(),
                changes: simulation.writes.changes(),
                bytes: simulation.writes.bytes(),
                connected_seconds: tally.connected_seconds,
            },
            crashes: tally.crashes,
            browsers_lost: tally.browsers_lost,
            relayed: tally.relayed,
            moved: tally.moved,
            longest_due: tally.longest_due,
            most_open: tally.open.max(),
            most_live: tally.most_live,
            events: agenda.added(),
            most_planned: count(agenda.longest()),
        }
    }

    /// Returns the sessions that reached a status.
    #[must_use]
    pub fn with_status(&self, status: &str) -> u64 {
        let counted = self.outcomes.iter().filter(|((name, _), _)| *name == status);
        counted.map(|(_, count)| count).sum()
    }

    /// Returns the rows that are written for each session.
    #[must_use]
    pub fn rows_per_session(&self) -> f64 {
        ratio(self.store.rows.values().sum(), self.created)
    }
}

impl QueueReport {
    fn of(simulation: &Simulation<'_>) -> Self {
        let tally = &simulation.tally;
        let (running, waiting) = tally.means_seen();
        Self {
            waits: tally.waits.percentiles(),
            waits_of_largest: tally.waits_of_largest.percentiles(),
            waits_of_others: tally.waits_of_others.percentiles(),
            first_pages: tally.first_pages.percentiles(),
            holds: tally.holds.percentiles(),
            refused_full: tally.refused_full,
            refused_late: tally.refused_late,
            left: tally.left_queue,
            turns_given_back: tally.turns_given_back,
            failed_starts: tally.failed_starts,
            longest_place: tally.longest_place,
            most_waiting: tally.waiting.max(),
            most_slots: tally.slots.max(),
            overtaken: tally.overtaken,
            over_capacity: tally.over_capacity,
            slots_by_hour: tally.slots.by_hour(),
            waiting_by_hour: tally.waiting.by_hour(),
            running: LittlesLaw {
                seen: running,
                expected: tally.holds.total_seconds() / DAY_SECONDS,
            },
            waiting: LittlesLaw {
                seen: waiting,
                expected: tally.waits.total_seconds() / DAY_SECONDS,
            },
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Sessions: {} created, {} opened", self.created, self.opened)?;
        for ((status, code), count) in &self.outcomes {
            let part = 100.0 * ratio(*count, self.created);
            writeln!(out, "  {status:16} {code:24} {count:>10} {part:6.2} %")?;
        }
        writeln!(
            out,
            "  never ended: {}, events refused: {}",
            self.never_ended, self.rejected_events
        )?;
        writeln!(
            out,
            "  most open at once: {}, of these opened: {}",
            self.most_open, self.most_live
        )?;
        writeln!(
            out,
            "Instances: {}, {} slots; {} crashes, {} browsers lost; begun at another instance: {}; \
             moved while they waited: {}; longest list of the sweeper: {}",
            self.instances,
            self.slots,
            self.crashes,
            self.browsers_lost,
            self.relayed,
            self.moved,
            self.longest_due
        )?;
        self.queue.fmt(out)?;
        self.deliveries.fmt(out)?;
        self.fmt_store(out)?;
        writeln!(out, "Simulation: {} events, {} planned at most", self.events, self.most_planned)
    }
}

fn percentiles(out: &mut fmt::Formatter<'_>, name: &str, times: &Percentiles) -> fmt::Result {
    let Percentiles { count, mean, p50, p95, p99, max } = times;
    writeln!(
        out,
        "  {name:34} {count:>10} times, ms: mean {mean:.0}, p50 {p50}, p95 {p95}, p99 {p99}, max {max}"
    )
}

impl fmt::Display for QueueReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Browsers")?;
        percentiles(out, "wait for a slot", &self.waits)?;
        percentiles(out, "  of the largest team", &self.waits_of_largest)?;
        percentiles(out, "  of the other teams", &self.waits_of_others)?;
        percentiles(out, "link opened to platform's page", &self.first_pages)?;
        percentiles(out, "slot held", &self.holds)?;
        writeln!(
            out,
            "  refused: queue full {}, waited too long {}; left the queue {}; turns given back {}; \
             failed starts {}",
            self.refused_full,
            self.refused_late,
            self.left,
            self.turns_given_back,
            self.failed_starts
        )?;
        writeln!(
            out,
            "  most slots in use {}, most waiting {}, last place {}; overtaken {}; over capacity {}",
            self.most_slots,
            self.most_waiting,
            self.longest_place,
            self.overtaken,
            self.over_capacity
        )?;
        writeln!(
            out,
            "  Little's law: running {:.2} seen, {:.2} expected; waiting {:.3} seen, {:.3} expected",
            self.running.seen, self.running.expected, self.waiting.seen, self.waiting.expected
        )?;
        writeln!(out, "  hour  slots: mean   max  waiting: mean   max")?;
        let hours = self.slots_by_hour.iter().zip(&self.waiting_by_hour).enumerate();
        for (hour, (slots, waiting)) in hours {
            writeln!(
                out,
                "  {hour:>4} {:>12.1} {:>5} {:>14.1} {:>5}",
                slots.mean, slots.max, waiting.mean, waiting.max
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for DeliveryReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "Deliveries: {} owed, {} delivered, {} exhausted, {} lost, {} duplicated; {} calls, {} \
             results lost with their instance; longest backlog {}",
            self.owed,
            self.delivered,
            self.exhausted,
            self.lost,
            self.duplicated,
            self.calls,
            self.results_lost,
            self.longest_backlog
        )?;
        percentiles(out, "session ended to delivered", &self.times)
    }
}

impl Report {
    fn fmt_store(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |number: u64| ratio(number, self.created);
        writeln!(
            out,
            "Store: {:.2} rows and {:.2} transactions of transitions for each session",
            self.rows_per_session(),
            each(self.store.changes)
        )?;
        for (write, rows) in &self.store.rows {
            writeln!(out, "  {:34} {rows:>12} {:>8.3}", write.as_str(), each(*rows))?;
        }
        let bytes = self.store.bytes;
        let sampled = |number: u64| ratio(number, bytes.sessions);
        writeln!(
            out,
            "  bytes of values for each session (JSON, before encryption): session rows {:.0}, \
             bodies {:.0}, jobs {:.0}, timeline {:.0}",
            sampled(bytes.session_rows),
            sampled(bytes.bodies),
            sampled(bytes.jobs),
            sampled(bytes.timeline)
        )?;
        writeln!(
            out,
            "  applicants connected: {:.1} s for each session, {:.1} at once on average",
            self.store.connected_seconds / float(self.created.max(1)),
            self.store.connected_seconds / DAY_SECONDS
        )
    }
}
