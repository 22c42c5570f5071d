//! Ends sessions whose time is over, and takes browsers away from processes that died.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{id::InstanceId, session::Event};
use ports::{outbox::Outbox, session_store::DueReason};
use tokio::time::Instant;

use super::{Worker, log_error};
use crate::advance::{AdvanceError, SessionEngine};

/// How often each instance looks for sessions and leases whose time is over.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
/// How many of them it ends each time.
pub const SWEEP_BATCH: u16 = 200;
/// A step of the clock that leases allow for: they last 4 s longer than a process keeps a browser whose
/// lease it cannot renew.
const MAX_CLOCK_STEP: TimeDelta = TimeDelta::seconds(2);
/// Other processes notice a step within a second, and have then renewed all leases 5 s later, or end their
/// browsers 16 s later.
const JUDGEMENT_PAUSE: Duration = Duration::from_secs(20);
/// A step just before the process began was noticed by all others, and they have renewed their leases.
const FIRST_PAUSE: Duration = Duration::from_secs(7);
/// Age at which jobs for a process that is gone are dropped.
const ORPHAN_AGE: TimeDelta = TimeDelta::minutes(10);

/// Expires sessions and browser leases.
pub struct SessionSweeper {
    pub engine: Arc<SessionEngine>,
    pub outbox: Arc<dyn Outbox>,
    pub node: InstanceId,
}

#[async_trait]
impl Worker for SessionSweeper {
    fn name(&self) -> &'static str {
        "expired sessions"
    }

    async fn run(&self) {
        let mut leases = LeaseJudgement::new();
        loop {
            let now = self.engine.clock.now();
            if let Err(error) = self.sweep(now, leases.is_possible(now)).await {
                log_error(&error, "failed to end expired sessions, retrying");
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    }
}

/// Notices that the clock was set forward: then all leases seem to have ended, until their holders have
/// renewed them by the same clock.
struct LeaseJudgement {
    /// The time of the sweep before, by the clock and by one that nobody sets.
    before: Option<(DateTime<Utc>, Instant)>,
    suspended_until: Instant,
}

impl LeaseJudgement {
    fn new() -> Self {
        Self { before: None, suspended_until: Instant::now() + FIRST_PAUSE }
    }

    /// Whether leases that have ended by the clock count as ended.
    fn is_possible(&mut self, now: DateTime<Utc>) -> bool {
        let here = Instant::now();
        if let Some((time, moment)) = self.before.replace((now, here)) {
            let elapsed =
                TimeDelta::from_std(here.duration_since(moment)).unwrap_or(TimeDelta::MAX);
            if now - time > elapsed + MAX_CLOCK_STEP {
                self.suspended_until = here + JUDGEMENT_PAUSE;
            }
        }
        here >= self.suspended_until
    }
}

impl SessionSweeper {
    async fn sweep(&self, now: DateTime<Utc>, are_leases_judged: bool) -> Result<(), AdvanceError> {
        for (session, due) in self.engine.leases.find_due(now, SWEEP_BATCH).await? {
            let moved = match due {
                DueReason::Expired => self.engine.advance(session.id, None, Event::Expired).await,
                DueReason::BrowserLapsed(_) if !are_leases_judged => continue,
                DueReason::BrowserLapsed(browser) => {
                    let is_retry_offered = session.state.offered_retry().is_some();
                    let event =
                        if is_retry_offered { Event::RetryExpired } else { Event::BrowserLost };
                    self.engine.advance(session.id, Some(browser), event).await
                }
            };
            match moved {
                Ok(_) | Err(AdvanceError::Rejected(_)) => (),
                Err(error) => return Err(error),
            }
        }
        if are_leases_judged {
            self.outbox.delete_orphans(self.node, now - ORPHAN_AGE).await?;
        }
        Ok(())
    }
}
