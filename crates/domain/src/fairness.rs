//! Who gets the next browser: a weighted fair queue over teams and environments.
//!
//! A browser that becomes free goes to the team that has the fewest, so that a team with many
//! sessions delays another team by one session at most. Development counts
//! [`DEVELOPMENT_WEIGHT`] times: it does not crowd out production, and is not starved by it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    api_key::Environment,
    id::{BrowserId, TeamId},
};

/// As how many browsers one of development counts.
pub const DEVELOPMENT_WEIGHT: usize = 4;
/// A session that has not asked for so long no longer waits.
pub const WAITING_TTL: TimeDelta = TimeDelta::seconds(10);

/// For whom a browser runs.
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

/// How many browsers may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserQuotas {
    pub total: usize,
    /// Of one team, both environments together.
    pub per_team: usize,
    /// Of all teams' development sessions together.
    pub development: usize,
}

/// The answer to a session that asks for a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It may start one now, and counts as running from then on.
    Now,
    /// It waits; its place among those who wait, from 1.
    Wait { place: usize },
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    tenant: Tenant,
    since: DateTime<Utc>,
    asked_at: DateTime<Utc>,
}

/// The browsers of one process and the sessions that wait for one.
#[derive(Debug)]
pub struct BrowserQueue {
    quotas: BrowserQuotas,
    /// With the moment since which each had waited.
    running: BTreeMap<BrowserId, (Tenant, DateTime<Utc>)>,
    waiting: BTreeMap<BrowserId, Waiting>,
}

/// How many browsers each tenant has, while turns are given out.
struct Shares {
    by_tenant: BTreeMap<Tenant, usize>,
    total: usize,
}

impl Shares {
    fn of(&self, tenant: Tenant) -> usize {
        self.by_tenant.get(&tenant).copied().unwrap_or_default()
    }

    fn sum(&self, counted: impl Fn(&Tenant) -> bool) -> usize {
        self.by_tenant.iter().filter(|(tenant, _)| counted(tenant)).map(|(_, count)| count).sum()
    }

    fn may_have_more(&self, tenant: Tenant, quotas: BrowserQuotas) -> bool {
        self.total < quotas.total
            && self.sum(|other| other.team == tenant.team) < quotas.per_team
            && (!tenant.is_development()
                || self.sum(|other| other.is_development()) < quotas.development)
    }

    /// The lower, the sooner.
    fn rank(&self, tenant: Tenant) -> usize {
        self.of(tenant).saturating_add(1).saturating_mul(tenant.weight())
    }

    fn add(&mut self, tenant: Tenant) {
        let count = self.by_tenant.entry(tenant).or_default();
        *count = count.saturating_add(1);
        self.total = self.total.saturating_add(1);
    }
}

impl BrowserQueue {
    #[must_use]
    pub const fn new(quotas: BrowserQuotas) -> Self {
        Self { quotas, running: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    /// Asks for a browser. A session that is told to wait asks again, sooner than
    /// [`WAITING_TTL`], or loses its place. One that is running already may go on.
    pub fn ask(&mut self, id: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.waiting.retain(|_, waiting| now - waiting.asked_at < WAITING_TTL);
        if self.running.contains_key(&id) {
            return Turn::Now;
        }
        let since = self.waiting.get(&id).map_or(now, |waiting| waiting.since);
        self.waiting.insert(id, Waiting { tenant, since, asked_at: now });
        let (now, place) = self.place(id);
        if now {
            self.waiting.remove(&id);
            self.running.insert(id, (tenant, since));
            return Turn::Now;
        }
        Turn::Wait { place }
    }

    /// The browser could not be started for want of room: the session waits as before, and what
    /// runs is as much as there is room for.
    pub fn refused(&mut self, id: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        let since = self.running.remove(&id).map_or(now, |(_, since)| since);
        self.waiting.insert(id, Waiting { tenant, since, asked_at: now });
        Turn::Wait { place: self.place(id).1 }
    }

    /// The browser has ended, or its session no longer wants one.
    pub fn ended(&mut self, id: BrowserId) {
        self.running.remove(&id);
        self.waiting.remove(&id);
    }

    /// How many sessions wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a session would get one of the browsers that are free, and its place in the queue.
    fn place(&self, id: BrowserId) -> (bool, usize) {
        let mut shares = Shares { by_tenant: BTreeMap::new(), total: 0 };
        for (tenant, _) in self.running.values() {
            shares.add(*tenant);
        }
        let mut left: Vec<_> = self.waiting.iter().collect();
        let mut place = 0_usize;
        // Each turn goes to one who waits. Those who would be over a quota come last.
        while !left.is_empty() {
            place = place.saturating_add(1);
            let next = left.iter().enumerate().min_by_key(|(_, (id, waiting))| {
                let tenant = waiting.tenant;
                let held = !shares.may_have_more(tenant, self.quotas);
                let full = shares.total >= self.quotas.total;
                (held && !full, shares.rank(tenant), waiting.since, **id)
            });
            let Some((at, (next, waiting))) = next.map(|(at, entry)| (at, *entry)) else { break };
            let free = shares.may_have_more(waiting.tenant, self.quotas);
            if *next == id {
                return (free, place);
            }
            shares.add(waiting.tenant);
            left.swap_remove(at);
        }
        (false, place)
    }
}

#[cfg(test)]
mod tests;
