//! The fairness queue of this process's browsers, shared between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    fairness::{BrowserQueue, QueueLoad, Quotas, Tenant, Turn},
    id::{BrowserId, TeamId},
};

pub use domain::session::START_RETRY_DELAY;

/// Failed starts of a browser after which a session fails.
pub const MAX_START_FAILURES: u32 = 5;
/// How often it is looked whether an applicant is back whose session waits for a browser: as often as
/// the sessions that are first in the queue ask.
pub const ABSENT_RETRY_DELAY: TimeDelta = START_RETRY_DELAY;
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

    /// Adds a session that has waited at another instance since a time, as [`BrowserQueue::arrive`] does.
    pub fn arrive(
        &self,
        browser: BrowserId,
        tenant: Tenant,
        since: DateTime<Utc>,
        now: DateTime<Utc>,
    ) {
        self.queue().arrive(browser, tenant, since, now);
    }

    /// Returns the sessions that wait, as [`BrowserQueue::in_order`] does.
    pub fn in_order(&self) -> Vec<(BrowserId, DateTime<Utc>)> {
        self.queue().in_order()
    }

    /// Returns how many sessions were moved here whose applicants are not connected yet.
    pub fn arriving(&self) -> usize {
        self.queue().arriving()
    }

    /// Returns since when a session has waited; `None` if it is not in the queue.
    pub fn waiting_since(&self, browser: BrowserId) -> Option<DateTime<Utc>> {
        self.queue().waiting_since(browser)
    }

    /// Asks for a turn, as [`BrowserQueue::ask`] does.
    pub fn ask(&self, browser: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.queue().ask(browser, tenant, now)
    }

    /// Keeps the place of a session that can use no turn, as [`BrowserQueue::hold`] does.
    pub fn hold(
        &self,
        browser: BrowserId,
        tenant: Tenant,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        self.queue().hold(browser, tenant, now)
    }

    /// Gives a turn back for which no slot was free; the session waits on at its old position.
    pub fn refused(&self, browser: BrowserId, tenant: Tenant, now: DateTime<Utc>) -> Turn {
        self.queue().refused(browser, tenant, now)
    }

    /// Ends a turn that was not used, or the wait for one.
    pub fn ended(&self, browser: BrowserId) {
        self.queue().ended(browser);
    }

    /// Ends a turn that was used.
    pub fn finished(&self, browser: BrowserId, now: DateTime<Utc>) {
        self.queue().finished(browser, now);
    }

    /// Returns how long a session at this place is expected to wait, as [`BrowserQueue::expected_wait`] does.
    pub fn expected_wait(&self, place: usize) -> Option<TimeDelta> {
        self.queue().expected_wait(place)
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
