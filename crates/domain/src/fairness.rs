//! The fairness queue: weighted fair queueing of a scarce resource over teams and environments.
//!
//! A turn that becomes free goes to the tenant that has the fewest, so that a team with many
//! sessions delays another team by one turn at most. A turn of a development session counts
//! [`DEVELOPMENT_WEIGHT`] times: development does not crowd out production, and production does
//! not starve it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    api_key::Environment,
    id::{BrowserId, TeamId},
};

/// The number of production turns that one development turn counts as.
pub const DEVELOPMENT_WEIGHT: usize = 4;
/// How long an entry waits after it last asked for a turn; then it is removed.
pub const WAITING_TTL: TimeDelta = TimeDelta::seconds(10);
/// The maximum number of waiting entries of all teams together, and of held ones beside them. A team
/// without a waiting entry may add one beyond it, and a held entry that asks again is not refused.
pub const MAX_WAITING: usize = 2000;
/// The number of turns, the last ones that were finished, of which the mean length is known.
const KNOWN_LENGTHS: usize = 32;
/// The least number of finished turns from which an expected wait is computed.
const ENOUGH_LENGTHS: usize = 3;
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
    /// Whether it keeps its place without a turn, as [`TurnQueue::hold`] says.
    is_held: bool,
    /// Whether it has arrived from elsewhere, and has not asked for a turn yet.
    is_arriving: bool,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    tenant: Tenant,
    /// Since when it had waited.
    waited_since: DateTime<Utc>,
    /// When it got its turn.
    since: DateTime<Utc>,
}

/// The running and the waiting entries of one process.
#[derive(Debug)]
pub struct TurnQueue<Id> {
    quotas: Quotas,
    running: BTreeMap<Id, Running>,
    /// How long the last turns were that were finished.
    lengths: VecDeque<TimeDelta>,
    waiting: BTreeMap<Id, Waiting>,
    /// The waiting entries of each tenant that are not held, the longest waiting first.
    queues: BTreeMap<Tenant, BTreeSet<(DateTime<Utc>, Id)>>,
    places: BTreeMap<Id, usize>,
    places_computed_at: DateTime<Utc>,
}

/// The queue for browsers.
pub type BrowserQueue = TurnQueue<BrowserId>;

/// The number of turns of each tenant, updated while turns are assigned.
#[derive(Clone, Default)]
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

    /// Returns whether the tenant's own quotas allow one more turn, whatever the others have. A quota of all
    /// turns is none.
    fn is_within_quota(&self, tenant: Tenant, quotas: Quotas) -> bool {
        let of_team = self.by_team.get(&tenant.team).copied().unwrap_or_default();
        let is_limited = |quota: usize, taken: usize| quota < quotas.total && taken >= quota;
        let is_of_team = is_limited(quotas.per_team, of_team);
        let is_of_development =
            tenant.is_development() && is_limited(quotas.development, self.development);
        !is_of_team && !is_of_development
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
            lengths: VecDeque::new(),
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
        let waited = self.waiting.get(&id).map(|waiting| waiting.since);
        if waited.is_none() && self.is_full(tenant) {
            return Turn::Full;
        }
        let since = waited.unwrap_or(now);
        match self.waiting.get_mut(&id).filter(|waiting| !waiting.is_held) {
            Some(waiting) => waiting.asked_at = now,
            None => self.enqueue(id, tenant, since, now),
        }
        if self.is_next(id) {
            self.dequeue(id);
            self.running.insert(id, Running { tenant, waited_since: since, since: now });
            return Turn::Now;
        }
        Turn::Wait { place: self.place(id, now), since }
    }

    /// Adds an entry that has waited elsewhere since a time, unless it is in the queue already. It is held
    /// until it asks for a turn, or says that it can use none; as many entries are held as by
    /// [`Self::hold`], and a further one begins to wait when it asks.
    pub fn arrive(&mut self, id: Id, tenant: Tenant, since: DateTime<Utc>, now: DateTime<Utc>) {
        self.remove_expired(now);
        let is_known = self.running.contains_key(&id) || self.waiting.contains_key(&id);
        if !is_known && self.may_hold(tenant.team) {
            // The clock of whoever says so may be ahead.
            let since = since.min(now);
            let arrived =
                Waiting { tenant, since, asked_at: now, is_held: true, is_arriving: true };
            self.waiting.insert(id, arrived);
        }
    }

    /// Returns the number of entries that have arrived and have not asked for a turn yet.
    #[must_use]
    pub fn arriving(&self) -> usize {
        self.waiting.values().filter(|waiting| waiting.is_arriving).count()
    }

    /// Keeps the place of an entry that can use no turn now: others get theirs, and it is not counted,
    /// until it asks again. A turn that it has is taken back. The caller says so again within
    /// [`WAITING_TTL`].
    ///
    /// Returns since when the entry has waited; `None` if as many entries are held as may wait, and this
    /// one is not in the queue any more.
    pub fn hold(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.remove_expired(now);
        let had_turn = self.running.remove(&id).map(|running| running.waited_since);
        let waited = self.waiting.get(&id).copied();
        let is_arriving = waited.is_some_and(|waiting| waiting.is_arriving);
        let since = had_turn.or(waited.map(|waiting| waiting.since)).unwrap_or(now);
        self.dequeue(id);
        if !self.may_hold(tenant.team) {
            return None;
        }
        let held = Waiting { tenant, since, asked_at: now, is_held: true, is_arriving };
        self.waiting.insert(id, held);
        Some(since)
    }

    /// Takes back a turn that could not be used because no capacity was left. The entry waits
    /// again, with its former waiting time.
    pub fn refused(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        let since = self.running.remove(&id).map_or(now, |running| running.waited_since);
        self.dequeue(id);
        self.enqueue(id, tenant, since, now);
        Turn::Wait { place: self.place(id, now), since }
    }

    /// Removes an entry whose turn is no longer needed.
    pub fn ended(&mut self, id: Id) {
        self.running.remove(&id);
        self.dequeue(id);
    }

    /// Removes an entry that has used its turn. The time that it took is one of those that tell how long
    /// others will wait.
    pub fn finished(&mut self, id: Id, now: DateTime<Utc>) {
        if let Some(Running { since, .. }) = self.running.get(&id) {
            self.lengths.push_back((now - *since).max(TimeDelta::zero()));
            if self.lengths.len() > KNOWN_LENGTHS {
                self.lengths.pop_front();
            }
        }
        self.ended(id);
    }

    /// Returns how long an entry at a place in the queue, from 1, is expected to wait: turns become free one
    /// after the other, as if they were spread evenly over the mean length of the last ones. `None` while too
    /// few turns have been finished.
    #[must_use]
    pub fn expected_wait(&self, place: usize) -> Option<TimeDelta> {
        if self.lengths.len() < ENOUGH_LENGTHS {
            return None;
        }
        let sum: i64 = self.lengths.iter().map(TimeDelta::num_milliseconds).sum();
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let mean = sum.checked_div(number(self.lengths.len()))?;
        let turns = number(self.running.len().max(1));
        let wait = mean.saturating_mul(number(place)).checked_div(turns)?;
        TimeDelta::try_milliseconds(wait)
    }

    /// Returns the number of waiting entries that are not held.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.values().map(BTreeSet::len).sum()
    }

    /// Returns how much of the resource is used at a time, and who waits for it then.
    pub fn load(&mut self, now: DateTime<Utc>) -> QueueLoad {
        self.remove_expired(now);
        let heads = self.queues.values().filter_map(|queue| queue.first());
        QueueLoad {
            total: self.quotas.total,
            running: self.running.len(),
            waiting: self.waiting(),
            waiting_since: heads.map(|(since, _)| *since).min(),
        }
    }

    /// Returns the numbers of running and of waiting entries of a team.
    #[must_use]
    pub fn of_team(&self, team: TeamId) -> (usize, usize) {
        let running = self.running.values().filter(|running| running.tenant.team == team).count();
        (running, self.waiting_of(team))
    }

    /// Returns the entries in the order of their turns, each with the time since which it has waited. Those
    /// of a tenant whose quota is reached are left out: a turn that becomes free is not for them.
    #[must_use]
    pub fn in_order(&self) -> Vec<(Id, DateTime<Utc>)> {
        let order = self.turns(self.shares()).filter(|turn| turn.is_within_quota);
        order.filter_map(|turn| Some((turn.id, self.waiting.get(&turn.id)?.since))).collect()
    }

    /// Returns since when an entry has waited; `None` if it does not wait.
    #[must_use]
    pub fn waiting_since(&self, id: Id) -> Option<DateTime<Utc>> {
        self.waiting.get(&id).map(|waiting| waiting.since)
    }

    /// Returns whether one more entry of a team may be held.
    fn may_hold(&self, team: TeamId) -> bool {
        let held = self.waiting.values().filter(|waiting| waiting.is_held);
        let of_team = held.clone().filter(|waiting| waiting.tenant.team == team).count();
        of_team < self.quotas.waiting_per_team && held.count() < MAX_WAITING
    }

    fn waiting_of(&self, team: TeamId) -> usize {
        let queues = self.queues.iter().filter(|(tenant, _)| tenant.team == team);
        queues.map(|(_, queue)| queue.len()).sum()
    }

    /// Returns whether the queue takes no further entry of the tenant. When other teams have
    /// filled the queue, a team without a waiting entry may still add one, up to twice the limit.
    fn is_full(&self, tenant: Tenant) -> bool {
        let (own, all) = (self.waiting_of(tenant.team), self.waiting());
        let limit = if own == 0 { MAX_WAITING.saturating_mul(2) } else { MAX_WAITING };
        own >= self.quotas.waiting_per_team || all >= limit
    }

    fn enqueue(&mut self, id: Id, tenant: Tenant, since: DateTime<Utc>, now: DateTime<Utc>) {
        let waiting = Waiting { tenant, since, asked_at: now, is_held: false, is_arriving: false };
        self.waiting.insert(id, waiting);
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
        self.running.values().for_each(|running| shares.add(running.tenant));
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
        let (taken, mut shares, quotas) = (shares.clone(), shares, self.quotas);
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
            let is_within_quota = taken.is_within_quota(tenant, quotas);
            shares.add(tenant);
            Some(NextTurn { id, is_free, is_within_quota })
        })
    }
}

/// The next turn of a waiting entry.
struct NextTurn<Id> {
    id: Id,
    /// Whether the turn is free now.
    is_free: bool,
    /// Whether its tenant may have more turns than it has now.
    is_within_quota: bool,
}

#[cfg(test)]
mod tests;
