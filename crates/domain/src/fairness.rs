//! Who gets the next turn at something scarce: a weighted fair queue over teams and environments.
//!
//! A turn that becomes free goes to the team that has the fewest, so that a team with many
//! sessions delays another team by one turn at most. Development counts [`DEVELOPMENT_WEIGHT`]
//! times: it does not crowd out production, and is not starved by it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    api_key::Environment,
    id::{BrowserId, TeamId},
};

/// As how many turns one of development counts.
pub const DEVELOPMENT_WEIGHT: usize = 4;
/// What has not asked for so long no longer waits.
pub const WAITING_TTL: TimeDelta = TimeDelta::seconds(10);
/// How many may wait in one queue, of all teams together; a team of which none waits may have one
/// more.
pub const MAX_WAITING: usize = 2000;
/// Places in the queue are computed anew after this time at the latest.
const PLACES_TTL: TimeDelta = TimeDelta::seconds(1);

/// For whom something is done.
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

/// How many may have a turn at once, and how many may wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    pub total: usize,
    /// Of one team, both environments together.
    pub per_team: usize,
    /// Of all teams' development sessions together.
    pub development: usize,
    /// Of one team, both environments together; [`MAX_WAITING`] bounds all teams.
    pub waiting_per_team: usize,
}

/// The answer to one who asks for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It has one now, and counts as running from then on.
    Now,
    /// It waits since then; its place among those who wait, from 1, may be a second old.
    Wait { place: usize, since: DateTime<Utc> },
    /// As many wait already as may: it has no place.
    Full,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    tenant: Tenant,
    since: DateTime<Utc>,
    asked_at: DateTime<Utc>,
}

/// Those who have a turn and those who wait for one, in one process.
#[derive(Debug)]
pub struct TurnQueue<Id> {
    quotas: Quotas,
    /// With the moment since which each had waited.
    running: BTreeMap<Id, (Tenant, DateTime<Utc>)>,
    waiting: BTreeMap<Id, Waiting>,
    /// Of those who wait, the longest waiting first.
    lines: BTreeMap<Tenant, BTreeSet<(DateTime<Utc>, Id)>>,
    places: BTreeMap<Id, usize>,
    places_from: DateTime<Utc>,
}

/// Turns at browsers.
pub type BrowserQueue = TurnQueue<BrowserId>;

/// How many turns each tenant has, while more are given out.
#[derive(Default)]
struct Shares {
    by_tenant: BTreeMap<Tenant, usize>,
    by_team: BTreeMap<TeamId, usize>,
    development: usize,
    total: usize,
}

impl Shares {
    fn may_have_more(&self, tenant: Tenant, quotas: Quotas) -> bool {
        let of_team = self.by_team.get(&tenant.team).copied().unwrap_or_default();
        self.total < quotas.total
            && of_team < quotas.per_team
            && (!tenant.is_development() || self.development < quotas.development)
    }

    /// The lower, the sooner.
    fn rank(&self, tenant: Tenant) -> usize {
        let has = self.by_tenant.get(&tenant).copied().unwrap_or_default();
        has.saturating_add(1).saturating_mul(tenant.weight())
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
            lines: BTreeMap::new(),
            places: BTreeMap::new(),
            places_from: DateTime::UNIX_EPOCH,
        }
    }

    /// Asks for a turn. Who is told to wait asks again, sooner than [`WAITING_TTL`], or loses the
    /// place. One who has a turn already may go on.
    pub fn ask(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.forget_the_absent(now);
        if self.running.contains_key(&id) {
            return Turn::Now;
        }
        if !self.waiting.contains_key(&id) {
            if self.is_full(tenant) {
                return Turn::Full;
            }
            self.join(id, tenant, now, now);
        }
        let since = self.waiting.get_mut(&id).map_or(now, |waiting| {
            waiting.asked_at = now;
            waiting.since
        });
        if self.is_next(id) {
            self.leave(id);
            self.running.insert(id, (tenant, since));
            return Turn::Now;
        }
        Turn::Wait { place: self.place(id, now), since }
    }

    /// The turn could not be used for want of room: it waits as before, and what runs is as much
    /// as there is room for.
    pub fn refused(&mut self, id: Id, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        let since = self.running.remove(&id).map_or(now, |(_, since)| since);
        self.leave(id);
        self.join(id, tenant, since, now);
        Turn::Wait { place: self.place(id, now), since }
    }

    /// The turn has ended, or is no longer wanted.
    pub fn ended(&mut self, id: Id) {
        self.running.remove(&id);
        self.leave(id);
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many of a team have a turn, and how many wait for one.
    #[must_use]
    pub fn of_team(&self, team: TeamId) -> (usize, usize) {
        let running = self.running.values().filter(|(tenant, _)| tenant.team == team).count();
        (running, self.waiting_of(team))
    }

    fn waiting_of(&self, team: TeamId) -> usize {
        let lines = self.lines.iter().filter(|(tenant, _)| tenant.team == team);
        lines.map(|(_, line)| line.len()).sum()
    }

    /// Whether there is no place to wait for one more of this tenant. A team of which none waits
    /// has one where others have taken all, until there are twice as many.
    fn is_full(&self, tenant: Tenant) -> bool {
        let (own, all) = (self.waiting_of(tenant.team), self.waiting.len());
        let most = if own == 0 { MAX_WAITING.saturating_mul(2) } else { MAX_WAITING };
        own >= self.quotas.waiting_per_team || all >= most
    }

    fn join(&mut self, id: Id, tenant: Tenant, since: DateTime<Utc>, now: DateTime<Utc>) {
        self.waiting.insert(id, Waiting { tenant, since, asked_at: now });
        self.lines.entry(tenant).or_default().insert((since, id));
    }

    fn leave(&mut self, id: Id) {
        self.places.remove(&id);
        let Some(Waiting { tenant, since, .. }) = self.waiting.remove(&id) else { return };
        if let Some(line) = self.lines.get_mut(&tenant) {
            line.remove(&(since, id));
            if line.is_empty() {
                self.lines.remove(&tenant);
            }
        }
    }

    fn forget_the_absent(&mut self, now: DateTime<Utc>) {
        let absent = |waiting: &Waiting| now - waiting.asked_at >= WAITING_TTL;
        let gone = self.waiting.iter().filter(|(_, waiting)| absent(waiting));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.leave(id);
        }
    }

    fn shares(&self) -> Shares {
        let mut shares = Shares::default();
        self.running.values().for_each(|(tenant, _)| shares.add(*tenant));
        shares
    }

    /// Whether it would get one of the turns that are free now.
    fn is_next(&self, id: Id) -> bool {
        let shares = self.shares();
        let free = self.quotas.total.saturating_sub(shares.total);
        self.turns(shares).take(free).take_while(|turn| turn.is_free).any(|turn| turn.id == id)
    }

    fn place(&mut self, id: Id, now: DateTime<Utc>) -> usize {
        let old = now - self.places_from >= PLACES_TTL || now < self.places_from;
        if old || !self.places.contains_key(&id) {
            let order = self.turns(self.shares()).zip(1..);
            self.places = order.map(|(turn, place)| (turn.id, place)).collect();
            self.places_from = now;
        }
        self.places.get(&id).copied().unwrap_or(self.waiting.len())
    }

    /// All who wait, in the order of their turns.
    fn turns(&self, shares: Shares) -> impl Iterator<Item = NextTurn<Id>> {
        let lines = self.lines.iter().map(|(tenant, line)| (*tenant, line.iter().peekable()));
        let mut lines: Vec<_> = lines.collect();
        let (mut shares, quotas) = (shares, self.quotas);
        std::iter::from_fn(move || {
            let full = shares.total >= quotas.total;
            let heads = lines.iter_mut().enumerate().filter_map(|(at, (tenant, line))| {
                let head = line.peek()?;
                // Those who would be over a quota come last.
                let over_quota = !full && !shares.may_have_more(*tenant, quotas);
                Some(((over_quota, shares.rank(*tenant), **head), at, *tenant))
            });
            let ((_, _, (_, id)), at, tenant) = heads.min_by_key(|(rank, _, _)| *rank)?;
            if let Some((_, line)) = lines.get_mut(at) {
                line.next();
            }
            let is_free = shares.may_have_more(tenant, quotas);
            shares.add(tenant);
            Some(NextTurn { id, is_free })
        })
    }
}

/// A turn of one who waits.
struct NextTurn<Id> {
    id: Id,
    /// Whether it can be had now.
    is_free: bool,
}

#[cfg(test)]
mod tests;
