//! Forgets in time: the data of sessions that closed long ago, the log of their deliveries, old
//! idempotency keys, and sign-ins that ran out. Writes down when keys were used.

use std::time::Duration;

use chrono::TimeDelta;

use crate::{
    advance::AdvanceError,
    workers::{Workers, log_error},
};

const RETENTION_INTERVAL: Duration = Duration::from_secs(60);
const KEY_USES_INTERVAL: Duration = Duration::from_secs(10);
const RETENTION_BATCH: u16 = 200;
/// How long idempotency keys are kept; they stand for their request for a day.
const IDEMPOTENCY_KEY_RETENTION: TimeDelta = TimeDelta::hours(25);

impl Workers {
    pub(crate) async fn delete_expired(&self) {
        loop {
            match self.delete_batch().await {
                // There is more to do.
                Ok(true) => (),
                Ok(false) => tokio::time::sleep(RETENTION_INTERVAL).await,
                Err(error) => {
                    log_error(&error, "failed to delete expired data, retrying");
                    tokio::time::sleep(RETENTION_INTERVAL).await;
                }
            }
        }
    }

    /// Writes down when keys were used; what is noted is lost with a process that is killed.
    pub(crate) async fn record_key_uses(&self) {
        loop {
            tokio::time::sleep(KEY_USES_INTERVAL).await;
            if let Err(error) = self.keys.record_key_uses(&self.uses.take()).await {
                log_error(&error, "failed to record when API keys were last used");
            }
        }
    }

    /// Answers whether there may be more.
    async fn delete_batch(&self) -> Result<bool, AdvanceError> {
        let now = self.core.clock.now();
        let old = self.core.sessions.find_unerased(now - self.retention, RETENTION_BATCH).await?;
        let erased = old.len();
        for id in old {
            self.core.erase(id).await?;
        }
        if !self.core.sessions.truncate_log().await? {
            tracing::debug!("readers hold the database's log back; it is emptied later");
        }
        self.core.sessions.delete_idempotency_keys(now - IDEMPOTENCY_KEY_RETENTION).await?;
        self.sign_ins.delete_expired_sign_ins(now).await?;
        self.account_links.delete_expired_links(now).await?;
        self.browsers.delete_expired_browsers(now).await?;
        self.core.devices.delete_expired_codes(now).await?;
        let logs = self.log.delete_old_deliveries(now - self.retention, RETENTION_BATCH).await?;
        Ok(erased.max(logs) >= usize::from(RETENTION_BATCH))
    }
}
