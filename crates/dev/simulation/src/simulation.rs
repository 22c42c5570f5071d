//! The loop over virtual time: arrivals, crashes, sweeps, and the look into the queues.

use std::collections::{HashMap, VecDeque};

use application::workers::{SWEEP_BATCH, SWEEP_INTERVAL};
use chrono::{DateTime, TimeDelta, Timelike as _, Utc};
use domain::session::Event;

use crate::{
    agenda::Agenda,
    endpoints::{Call, Condition, Delivery, Endpoint, EndpointIndex},
    instances::{InstanceIndex, Instances},
    numbers::{count, float},
    parameters::{InvalidParameters, Parameters},
    random::Random,
    report::Report,
    session::{LiveSession, UnopenedSession},
    tally::Tally,
    writes::{Write, Writes},
};

/// 2026-01-01T00:00:00Z.
const START_SECONDS: i64 = 1_767_225_600;

/// What happens at a time.
#[derive(Clone, Copy)]
pub(crate) enum Occurrence {
    SessionCreated,
    SessionOpened(UnopenedSession),
    /// The lifetime of a session is over that nobody has opened.
    UnopenedExpired(UnopenedSession),
    Session {
        number: u64,
        epoch: u32,
        what: SessionOccurrence,
    },
    SlotFreed {
        by: (InstanceIndex, u32),
    },
    Sweep,
    /// An instance at which sessions wait looks whether others have room.
    QueueBalanced(InstanceIndex),
    InstanceCrashed(InstanceIndex),
    InstanceRestarted(InstanceIndex),
    DeliveryDue(Delivery),
    CallEnded(Call),
    PauseEnded(EndpointIndex),
    OutageBegan(EndpointIndex),
    OutageEnded(EndpointIndex),
    QueuesLookedInto,
}

/// What happens to a session that was opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionOccurrence {
    /// The applicant's page connects to an instance; `is_new` if the session is to begin at the least
    /// used one.
    Connected {
        is_new: bool,
    },
    /// The job that starts the browser is carried out, for the `attempt`-th time.
    TurnAsked {
        attempt: u32,
    },
    BrowserStarted {
        is_failed: bool,
    },
    /// The first act of the plan.
    Acted,
    /// The applicant decides whether to make another attempt.
    RetryDecided,
    LeaseLapsed,
    Expired,
}

/// A session that the sweeper has to end, or whose browser it has to take away.
#[derive(Debug, Clone, Copy)]
enum Due {
    Unopened(UnopenedSession),
    Opened { number: u64, epoch: u32, is_lapsed: bool },
}

/// A deployment in virtual time.
pub(crate) struct Simulation<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) random: Random,
    pub(crate) agenda: Agenda<Occurrence>,
    pub(crate) now: DateTime<Utc>,
    end_of_day: DateTime<Utc>,
    pub(crate) instances: Instances,
    /// Never iterated over: its order is random.
    pub(crate) live: HashMap<u64, LiveSession>,
    pub(crate) endpoints: Vec<Endpoint>,
    /// The sums of the shares of the teams, up to and with each.
    team_shares: Vec<f64>,
    due: VecDeque<Due>,
    will_sweep: bool,
    pub(crate) writes: Writes,
    pub(crate) tally: Tally,
}

/// Simulates one day of arrivals, and then goes on until every session has ended and every delivery
/// is delivered or exhausted.
///
/// # Errors
/// The parameters cannot be simulated.
pub fn simulate(parameters: &Parameters) -> Result<Report, InvalidParameters> {
    parameters.check()?;
    let mut simulation = Simulation::new(parameters);
    simulation.begin();
    while let Some((at, occurrence)) = simulation.agenda.next() {
        simulation.now = at;
        simulation.carry_out(occurrence);
    }
    Ok(Report::of(&simulation))
}

impl<'a> Simulation<'a> {
    fn new(parameters: &'a Parameters) -> Self {
        let mut random = Random::new(parameters.seed);
        let start = DateTime::from_timestamp(START_SECONDS, 0).unwrap_or_default();
        let instances = Instances::new(&parameters.deployment, start, &mut random);
        let partners = &parameters.partners;
        let endpoints = partners.teams.saturating_mul(partners.webhooks_per_team);
        let endpoints = (0..endpoints)
            .map(|_| Endpoint::new(random.chance(parameters.endpoints.dead)))
            .collect();
        let mut sum = 0.0;
        let team_shares = (1..=partners.teams).map(|rank| {
            sum += 1.0 / float(count(rank));
            sum
        });
        Self {
            parameters,
            random,
            agenda: Agenda::default(),
            now: start,
            end_of_day: start + TimeDelta::days(1),
            instances,
            live: HashMap::new(),
            endpoints,
            team_shares: team_shares.collect(),
            due: VecDeque::new(),
            will_sweep: false,
            writes: Writes::default(),
            tally: Tally::new(start),
        }
    }

    fn begin(&mut self) {
        self.schedule_creation();
        self.agenda.add(self.now + self.parameters.look_interval, Occurrence::QueuesLookedInto);
        for instance in 0..self.parameters.deployment.instances {
            self.schedule_crash(instance);
        }
        for endpoint in 0..self.endpoints.len() {
            self.schedule_outage(endpoint);
        }
    }

    /// Adds an event after a time.
    pub(crate) fn after(&mut self, time: TimeDelta, occurrence: Occurrence) {
        self.agenda.add(self.now + time, occurrence);
    }

    /// Adds an event of the day; none if it would be later.
    fn within_day(&mut self, time: TimeDelta, occurrence: Occurrence) {
        let at = self.now + time;
        if at < self.end_of_day {
            self.agenda.add(at, occurrence);
        }
    }

    fn carry_out(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::SessionCreated => self.create(),
            Occurrence::SessionOpened(unopened) => self.open(unopened),
            Occurrence::UnopenedExpired(unopened) => self.push_due(Due::Unopened(unopened)),
            Occurrence::Session { number, epoch, what } => {
                if self.live.get(&number).is_some_and(|live| live.epoch == epoch) {
                    self.session_event(number, what);
                }
            }
            Occurrence::SlotFreed { by } => {
                if let Some(instance) = self.instances.same_run(by) {
                    instance.occupied = instance.occupied.saturating_sub(1);
                }
            }
            Occurrence::Sweep => self.sweep(),
            Occurrence::QueueBalanced(index) => self.balance(index),
            Occurrence::InstanceCrashed(index) => self.crash(index),
            Occurrence::InstanceRestarted(index) => {
                self.instances.restart(index, self.now);
                self.schedule_crash(index);
            }
            Occurrence::DeliveryDue(delivery) => self.delivery_due(delivery),
            Occurrence::CallEnded(call) => self.call_ended(&call),
            Occurrence::PauseEnded(endpoint) => self.pause_ended(endpoint),
            Occurrence::OutageBegan(endpoint) => self.outage_began(endpoint),
            Occurrence::OutageEnded(endpoint) => {
                if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
                    endpoint.set_condition(Condition::Up);
                }
                self.schedule_outage(endpoint);
            }
            Occurrence::QueuesLookedInto => self.look_into_queues(),
        }
    }

    fn session_event(&mut self, number: u64, what: SessionOccurrence) {
        match what {
            SessionOccurrence::Connected { is_new } => self.connected(number, is_new),
            SessionOccurrence::TurnAsked { attempt } => self.ask_for_turn(number, attempt),
            SessionOccurrence::BrowserStarted { is_failed } => self.started(number, is_failed),
            SessionOccurrence::Acted => self.act(number),
            SessionOccurrence::RetryDecided => self.decide_retry(number),
            SessionOccurrence::LeaseLapsed => self.push_due_opened(number, true),
            SessionOccurrence::Expired => self.push_due_opened(number, false),
        }
    }

    /// Adds the next creation: in each hour, creations are a Poisson process.
    fn schedule_creation(&mut self) {
        let shares = &self.parameters.hourly_shares;
        let all: f64 = shares.iter().sum();
        let mut at = self.now;
        while at < self.end_of_day {
            let hour = usize::try_from(at.hour()).unwrap_or_default();
            let share = shares.get(hour).copied().unwrap_or_default() / all;
            let each_second = f64::from(self.parameters.sessions) * share / 3600.0;
            let into_hour = i64::from(at.num_seconds_from_midnight() % 3600);
            let whole_second = i64::from(at.nanosecond());
            let end_of_hour =
                at - TimeDelta::seconds(into_hour) - TimeDelta::nanoseconds(whole_second)
                    + TimeDelta::hours(1);
            if each_second > 0.0 {
                // In nanoseconds: at a high rate, many sessions are created in a millisecond.
                let time = self.random.exponential_seconds(1.0 / each_second).min(7200.0);
                let time = std::time::Duration::from_secs_f64(time);
                let next = at + TimeDelta::from_std(time).unwrap_or_default();
                if next < end_of_hour {
                    self.agenda.add(next, Occurrence::SessionCreated);
                    return;
                }
            }
            at = end_of_hour;
        }
    }

    fn create(&mut self) {
        self.schedule_creation();
        let number = self.tally.created;
        self.tally.created = number.saturating_add(1);
        let partners = &self.parameters.partners;
        let unopened = UnopenedSession {
            number,
            created_at: self.now,
            team: self.team(),
            region: u8::try_from(self.random.below(self.parameters.deployment.regions))
                .unwrap_or(0),
            is_development: self.random.chance(partners.development),
            is_attested: self.random.chance(partners.attested),
            is_invited: self.random.chance(partners.invited),
        };
        let opening = unopened.session(partners.expires_in).opening();
        self.writes.opening(&opening);
        if self.is_sampled(number) {
            self.writes.sample();
            self.writes.sampled_change(&opening);
        }
        if self.random.chance(partners.idempotent) {
            self.writes.add(Write::IdempotencyKeyInserted, 1);
            self.writes.add(Write::IdempotencyKeyDeleted, 1);
        }
        self.tally.open.add(self.now);
        let opening = self.random.log_normal(self.parameters.applicants.opening);
        if self.random.chance(self.parameters.applicants.never_open)
            || opening >= partners.expires_in
        {
            self.after(partners.expires_in, Occurrence::UnopenedExpired(unopened));
        } else {
            self.after(opening, Occurrence::SessionOpened(unopened));
        }
    }

    pub(crate) fn is_sampled(&self, number: u64) -> bool {
        number.is_multiple_of(self.parameters.sessions_per_byte_sample)
    }

    fn team(&mut self) -> u32 {
        let all = self.team_shares.last().copied().unwrap_or_default();
        let drawn = self.random.fraction() * all;
        let team = self.team_shares.partition_point(|sum| *sum <= drawn);
        u32::try_from(team).unwrap_or_default()
    }

    fn schedule_crash(&mut self, instance: InstanceIndex) {
        let rate = self.parameters.deployment.crashes_per_day;
        if rate > 0.0 {
            let time = self.random.exponential(86_400.0 / rate);
            self.within_day(time, Occurrence::InstanceCrashed(instance));
        }
    }

    fn schedule_outage(&mut self, endpoint: EndpointIndex) {
        let rate = self.parameters.endpoints.outages_per_day;
        if rate > 0.0 {
            let time = self.random.exponential(86_400.0 / rate);
            self.within_day(time, Occurrence::OutageBegan(endpoint));
        }
    }

    fn outage_began(&mut self, index: EndpointIndex) {
        let is_hanging = self.random.chance(self.parameters.endpoints.hanging);
        if let Some(endpoint) = self.endpoints.get_mut(index) {
            let condition = if is_hanging { Condition::Hanging } else { Condition::Refusing };
            endpoint.set_condition(condition);
        }
        let time = self.random.exponential(self.parameters.endpoints.outage_seconds);
        self.after(time, Occurrence::OutageEnded(index));
    }

    fn push_due_opened(&mut self, number: u64, is_lapsed: bool) {
        if let Some(live) = self.live.get(&number) {
            self.push_due(Due::Opened { number, epoch: live.epoch, is_lapsed });
        }
    }

    /// Has the sweeper find a session at its next look.
    fn push_due(&mut self, due: Due) {
        self.due.push_back(due);
        self.tally.longest_due = self.tally.longest_due.max(count(self.due.len()));
        if !self.will_sweep {
            self.will_sweep = true;
            self.schedule_sweep();
        }
    }

    fn schedule_sweep(&mut self) {
        let interval = i64::try_from(SWEEP_INTERVAL.as_millis()).unwrap_or(500);
        let into = self.now.timestamp_millis().rem_euclid(interval);
        self.after(TimeDelta::milliseconds(interval - into), Occurrence::Sweep);
    }

    /// Ends what is due, one batch at a time: all instances find the same sessions, so that more
    /// instances do not sweep faster.
    fn sweep(&mut self) {
        for _ in 0..SWEEP_BATCH {
            match self.due.pop_front() {
                Some(Due::Unopened(unopened)) => {
                    self.keep_open(unopened);
                    self.apply(unopened.number, Event::Expired);
                }
                Some(Due::Opened { number, epoch, is_lapsed }) => {
                    let is_current = self.live.get(&number).is_some_and(|live| live.epoch == epoch);
                    if is_current && is_lapsed {
                        self.lease_lapsed(number);
                    } else if is_current {
                        self.apply(number, Event::Expired);
                    }
                }
                None => break,
            }
        }
        self.will_sweep = !self.due.is_empty();
        if self.will_sweep {
            self.schedule_sweep();
        }
    }

    /// Compares the real queues with Little's law: their lengths are looked at in equal intervals.
    fn look_into_queues(&mut self) {
        let now = self.now;
        let (mut running, mut waiting) = (0_u64, 0_u64);
        for instance in self.instances.iter() {
            let load = instance.turns.load(now);
            running = running.saturating_add(count(load.running));
            waiting = waiting.saturating_add(count(load.waiting));
        }
        let backlog = self.endpoints.iter().map(|endpoint| count(endpoint.backlog())).sum();
        self.tally.look(running, waiting, backlog);
        self.within_day(self.parameters.look_interval, Occurrence::QueuesLookedInto);
    }
}
