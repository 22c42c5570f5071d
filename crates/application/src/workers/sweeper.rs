//! Ends sessions whose time is over, and takes browsers away from processes that died.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{id::InstanceId, session::Event};
use ports::{outbox::Outbox, session_store::DueReason};

use super::{Worker, log_error};
use crate::advance::{AdvanceError, SessionEngine};

/// How often each instance looks for sessions and leases whose time is over.
pub const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
/// How many of them it ends each time.
pub const SWEEP_BATCH: u16 = 200;
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
        loop {
            if let Err(error) = self.sweep().await {
                log_error(&error, "failed to end expired sessions, retrying");
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    }
}

impl SessionSweeper {
    async fn sweep(&self) -> Result<(), AdvanceError> {
        let now = self.engine.clock.now();
        for (session, due) in self.engine.leases.find_due(now, SWEEP_BATCH).await? {
            let moved = match due {
                DueReason::Expired => self.engine.advance(session.id, None, Event::Expired).await,
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
        self.outbox.delete_orphans(self.node, now - ORPHAN_AGE).await?;
        Ok(())
    }
}
