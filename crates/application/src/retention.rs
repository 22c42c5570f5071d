//! Forgets in time: the data of sessions that closed long ago, the log of their deliveries, old
//! idempotency keys, and sign-ins that ran out. Writes down when keys were used.

use std::time::Duration;

use chrono::TimeDelta;

use crate::{
    advance::Stuck,
    workers::{Workers, log_error},
};

const PACE: Duration = Duration::from_secs(60);
const USES_PACE: Duration = Duration::from_secs(10);
const BATCH: u16 = 200;
/// How long idempotency keys are kept; they stand for their request for a day.
const KEYS_KEPT: TimeDelta = TimeDelta::hours(25);

impl Workers {
    pub(crate) async fn forget(&self) {
        loop {
            match self.forget_some().await {
                // There is more to do.
                Ok(true) => (),
                Ok(false) => tokio::time::sleep(PACE).await,
                Err(error) => {
                    log_error(&error, "failed to delete expired data, retrying");
                    tokio::time::sleep(PACE).await;
                }
            }
        }
    }

    /// Writes down when keys were used; what is noted is lost with a process that is killed.
    pub(crate) async fn note_uses(&self) {
        loop {
            tokio::time::sleep(USES_PACE).await;
            if let Err(error) = self.keys.note_uses(&self.uses.take()).await {
                log_error(&error, "failed to record when API keys were last used");
            }
        }
    }

    /// Answers whether there may be more.
    async fn forget_some(&self) -> Result<bool, Stuck> {
        let now = self.core.clock.now();
        let old = self.core.sessions.unerased(now - self.retention, BATCH).await?;
        let erased = old.len();
        for id in old {
            self.core.erase(id).await?;
        }
        if !self.core.sessions.scrub().await? {
            tracing::debug!("readers hold the database's log back; it is emptied later");
        }
        self.core.sessions.forget_keys(now - KEYS_KEPT).await?;
        self.sign_ins.forget_sign_ins(now).await?;
        self.account_links.forget_links(now).await?;
        self.browsers.forget_browsers(now).await?;
        self.core.devices.forget_codes(now).await?;
        let logs = self.log.forget_deliveries(now - self.retention, BATCH).await?;
        Ok(erased.max(logs) >= usize::from(BATCH))
    }
}
