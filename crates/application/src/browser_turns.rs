//! The fairness queue of this process's browsers, shared between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    fairness::{BrowserQueue, QueueLoad, Quotas, Tenant, Turn},
    id::{BrowserId, TeamId},
};

/// Failed starts of a browser after which a session fails.
pub const MAX_START_FAILURES: u32 = 5;
/// How long after a failed start of a browser the next one follows.
pub const START_RETRY_DELAY: TimeDelta = TimeDelta::seconds(3);
/// For each so many sessions ahead of it, a session asks for its turn a second later.
const POSITIONS_PER_EXTRA_SECOND: usize = 16;

/// Returns how long a session at this position waits before it asks again. Sessions far behind ask
/// less often, and all of them ask some seconds before they lose their position
/// ([`domain::fairness::WAITING_TTL`]).
#[must_use]
pub fn delay_at(place: usize) -> TimeDelta {
    let extra = i64::try_from(place / POSITIONS_PER_EXTRA_SECOND).unwrap_or(i64::MAX);
    START_RETRY_DELAY + TimeDelta::seconds(extra.min(3))
}

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
