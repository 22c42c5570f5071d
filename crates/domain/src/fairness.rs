//! The fairness queue: weighted fair queueing of a scarce resource over teams and environments.
//!
//! A turn that becomes free goes to the tenant that has the fewest, so that a team with many
//! sessions delays another team by one turn at most. A turn of a development session counts
//! [`DEVELOPMENT_WEIGHT`] times: development does not crowd out production, and production does
//! not starve it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    api_key::Environment,
    id::{BrowserId, TeamId},
};

/// The number of production turns that one development turn counts as.
pub const DEVELOPMENT_WEIGHT: usize = 4;
/// How long an entry waits after it last asked for a turn; then it is removed.
pub const WAITING_TTL: TimeDelta = TimeDelta::seconds(10);
/// The maximum number of waiting entries of all teams together. A team without a waiting entry
/// may add one beyond it.
pub const MAX_WAITING: usize = 2000;
/// The maximum age of the computed places in the queue.
const PLACES_TTL: TimeDelta = TimeDelta::seconds(1);

/// A team in one environment, which the queue is fair to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenant {
    pub team: TeamId,
    pub environment: Environment,
}

impl Tenant {
    const fn weight(self) -> usize {
        match self.environment {
            Environment::Production => 1,
            Environment::Development => DEVELOPMENT_WEIGHT,
        }
    }

    const fn is_development(self) -> bool {
        matches!(self.environment, Environment::Development)
    }
}

/// The limits of turns that are taken at once, and of entries that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    pub total: usize,
    /// Turns of one team, both environments together.
    pub per_team: usize,
    /// Turns of the development sessions of all teams together.
    pub development: usize,
    /// Waiting entries of one team, both environments together; [`MAX_WAITING`] bounds all teams.
    pub waiting_per_team: usize,
}

/// How much of a resource is used, and who waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLoad {
    /// The turns that may be taken at once.
    pub total: usize,
    /// The turns that are taken.
    pub running: usize,
    pub waiting: usize,
    /// Since when the entry that has waited for the longest time waits.
    pub waiting_since: Option<DateTime<Utc>>,
}

/// The answer to a request for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The entry has a turn, and counts as running from now on.
    Now,
    /// The entry has waited since a time; its place in the queue, from 1, may be a second old.
    Wait { place: usize, since: DateTime<Utc> },
    /// The queue is full: the entry is not in it.
    Full,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    tenant: Tenant,
    since: DateTime<Utc>,
    asked_at: DateTime<Utc>,
}

/// The running and the waiting entries of one process.
#[derive(Debug)]
pub struct TurnQueue<Id> {
    quotas: Quotas,
    /// The running entries, each with the time since which it had waited.
    running: BTreeMap<Id, (Tenant, DateTime<Utc>)>,
    waiting: BTreeMap<Id, Waiting>,
    /// The waiting entries of each tenant, the longest waiting first.
    queues: BTreeMap<Tenant, BTreeSet<(DateTime<Utc>, Id)>>,
    places: BTreeMap<Id, usize>,
    places_computed_at: DateTime<Utc>,
}

/// The queue for browsers.
pub type BrowserQueue = TurnQueue<BrowserId>;

/// The number of turns of each tenant, updated while turns are assigned.
#[derive(Default)]
struct Shares {
    by_tenant: BTreeMap<Tenant, usize>,
    by_team: BTreeMap<TeamId, usize>,
    development: usize,
    total: usize,
}

impl Shares {
    /// Returns whether the quotas allow one more turn of the tenant.
    fn allows(&self, tenant: Tenant, quotas: Quotas) -> bool {
        let of_team = self.by_team.get(&tenant.team).copied().unwrap_or_default();
        self.total < quotas.total
            && of_team < quotas.per_team
            && (!tenant.is_development() || self.development < quotas.development)
    }

    /// Returns the rank of the tenant's next turn: the lowest rank is served first.
    fn rank(&self, tenant: Tenant) -> usize {
        let turns = self.by_tenant.get(&tenant).copied().unwrap_or_default();
        turns.saturating_add(1).saturating_mul(tenant.weight())
    }

    fn add(&mut self, tenant: Tenant) {
        let of_tenant = self.by_tenant.entry(tenant).or_default();
        *of_tenant = of_tenant.saturating_add(1);
        let of_team = self.by_team.entry(tenant.team).or_default();
        *of_team = of_team.saturating_add(1);
        self.development = self.development.saturating_add(usize::from(tenant.is_development()));
        self.total = self.total.saturating_add(1);
    }
}

impl<Id: Copy + Ord> TurnQueue<Id> {
    #[must_use]
    pub const fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            queues: BTreeMap::new(),
            places: BTreeMap::new(),
            places_computed_at: DateTime::UNIX_EPOCH,
        }
    }

    /// Requests a turn. The caller of a waiting entry asks again within [`WAITING_TTL`], or the
    /// entry loses its place. An entry that has a turn keeps it.
    pub fn ask(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.remove_expired(now);
        if self.running.contains_key(&id) {
            return Turn::Now;
        }
        if !self.waiting.contains_key(&id) {
            if self.is_full(tenant) {
                return Turn::Full;
            }
            self.enqueue(id, tenant, now, now);
        }
        let since = self.waiting.get_mut(&id).map_or(now, |waiting| {
            waiting.asked_at = now;
            waiting.since
        });
        if self.is_next(id) {
            self.dequeue(id);
            self.running.insert(id, (tenant, since));
            return Turn::Now;
        }
        Turn::Wait { place: self.place(id, now), since }
    }

    /// Takes back a turn that could not be used because no capacity was left. The entry waits
    /// again, with its former waiting time.
    pub fn refused(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        let since = self.running.remove(&id).map_or(now, |(_, since)| since);
        self.dequeue(id);
        self.enqueue(id, tenant, since, now);
        Turn::Wait { place: self.place(id, now), since }
    }

    /// Removes an entry whose turn has ended or is no longer needed.
    pub fn ended(&mut self, id: Id) {
        self.running.remove(&id);
        self.dequeue(id);
    }

    /// Returns the number of waiting entries.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how much of the resource is used at a time, and who waits for it then.
    pub fn load(&mut self, now: DateTime<Utc>) -> QueueLoad {
        self.remove_expired(now);
        let heads = self.queues.values().filter_map(|queue| queue.first());
        QueueLoad {
            total: self.quotas.total,
            running: self.running.len(),
            waiting: self.waiting.len(),
            waiting_since: heads.map(|(since, _)| *since).min(),
        }
    }

    /// Returns the numbers of running and of waiting entries of a team.
    #[must_use]
    pub fn of_team(&self, team: TeamId) -> (usize, usize) {
        let running = self.running.values().filter(|(tenant, _)| tenant.team == team).count();
        (running, self.waiting_of(team))
    }

    fn waiting_of(&self, team: TeamId) -> usize {
        let queues = self.queues.iter().filter(|(tenant, _)| tenant.team == team);
        queues.map(|(_, queue)| queue.len()).sum()
    }

    /// Returns whether the queue takes no further entry of the tenant. When other teams have
    /// filled the queue, a team without a waiting entry may still add one, up to twice the limit.
    fn is_full(&self, tenant: Tenant) -> bool {
        let (own, all) = (self.waiting_of(tenant.team), self.waiting.len());
        let limit = if own == 0 { MAX_WAITING.saturating_mul(2) } else { MAX_WAITING };
        own >= self.quotas.waiting_per_team || all >= limit
    }

    fn enqueue(&mut self, id: Id, tenant: Tenant, since: DateTime<Utc>, now: DateTime<Utc>) {
        self.waiting.insert(id, Waiting { tenant, since, asked_at: now });
        self.queues.entry(tenant).or_default().insert((since, id));
    }

    fn dequeue(&mut self, id: Id) {
        self.places.remove(&id);
        let Some(Waiting { tenant, since, .. }) = self.waiting.remove(&id) else { return };
        if let Some(queue) = self.queues.get_mut(&tenant) {
            queue.remove(&(since, id));
            if queue.is_empty() {
                self.queues.remove(&tenant);
            }
        }
    }

    fn remove_expired(&mut self, now: DateTime<Utc>) {
        let is_expired = |waiting: &Waiting| now - waiting.asked_at >= WAITING_TTL;
        let expired = self.waiting.iter().filter(|(_, waiting)| is_expired(waiting));
        for id in expired.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.dequeue(id);
        }
    }

    fn shares(&self) -> Shares {
        let mut shares = Shares::default();
        self.running.values().for_each(|(tenant, _)| shares.add(*tenant));
        shares
    }

    /// Returns whether the entry gets one of the turns that are free now.
    fn is_next(&self, id: Id) -> bool {
        let shares = self.shares();
        let free = self.quotas.total.saturating_sub(shares.total);
        self.turns(shares).take(free).take_while(|turn| turn.is_free).any(|turn| turn.id == id)
    }

    fn place(&mut self, id: Id, now: DateTime<Utc>) -> usize {
        let computed_at = self.places_computed_at;
        if now - computed_at >= PLACES_TTL || now < computed_at {
            let order = self.turns(self.shares()).zip(1..);
            self.places = order.map(|(turn, place)| (turn.id, place)).collect();
            self.places_computed_at = now;
        }
        if let Some(place) = self.places.get(&id) {
            return *place;
        }
        let before = self.turns(self.shares()).take_while(|turn| turn.id != id).count();
        let place = before.saturating_add(1);
        self.places.insert(id, place);
        place
    }

    /// Iterates over all waiting entries in the order of their turns.
    fn turns(&self, shares: Shares) -> impl Iterator<Item = NextTurn<Id>> {
        let queues = self.queues.iter().map(|(tenant, queue)| (*tenant, queue.iter().peekable()));
        let mut queues: Vec<_> = queues.collect();
        let (mut shares, quotas) = (shares, self.quotas);
        std::iter::from_fn(move || {
            let full = shares.total >= quotas.total;
            let heads = queues.iter_mut().enumerate().filter_map(|(index, (tenant, queue))| {
                let head = queue.peek()?;
                // Entries that would exceed a quota come last.
                let over_quota = !full && !shares.allows(*tenant, quotas);
                Some(((over_quota, shares.rank(*tenant), **head), index, *tenant))
            });
            let ((_, _, (_, id)), index, tenant) = heads.min_by_key(|(rank, _, _)| *rank)?;
            if let Some((_, queue)) = queues.get_mut(index) {
                queue.next();
            }
            let is_free = shares.allows(tenant, quotas);
            shares.add(tenant);
            Some(NextTurn { id, is_free })
        })
    }
}

/// The next turn of a waiting entry.
struct NextTurn<Id> {
    id: Id,
    /// Whether the turn is free now.
    is_free: bool,
}

#[cfg(test)]
mod tests;
