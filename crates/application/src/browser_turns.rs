//! The fairness queue of this process's browsers, shared between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use domain::{
    fairness::{BrowserQueue, QueueLoad, Quotas, Tenant, Turn},
    id::{BrowserId, TeamId},
};

/// Browsers that run in this process, and sessions that wait for one.
pub struct BrowserTurns(Mutex<BrowserQueue>);

impl BrowserTurns {
    #[must_use]
    pub const fn new(quotas: Quotas) -> Self {
        Self(Mutex::new(BrowserQueue::new(quotas)))
    }

    fn queue(&self) -> MutexGuard<'_, BrowserQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a turn, as [`BrowserQueue::ask`] does.
    pub fn ask(&self, browser: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.queue().ask(browser, tenant, now)
    }

    /// Gives a turn back for which no slot was free; the session waits on at its old position.
    pub fn refused(&self, browser: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.queue().refused(browser, tenant, now)
    }

    /// Ends a turn, or the wait for one.
    pub fn ended(&self, browser: BrowserId) {
        self.queue().ended(browser);
    }

    /// Returns how many browsers run, and how many sessions wait for one, of all teams.
    pub fn load(&self, now: DateTime<Utc>) -> QueueLoad {
        self.queue().load(now)
    }

    /// Returns how many browsers of a team run, and how many of its sessions wait for one.
    pub fn of_team(&self, team: TeamId) -> (usize, usize) {
        self.queue().of_team(team)
    }
}
