//! Forgets in time: the data of sessions that closed long ago, the log of their deliveries, and old
//! idempotency keys.

use std::time::Duration;

use chrono::TimeDelta;

use crate::{
    advance::Stuck,
    workers::{Workers, complain},
};

const PACE: Duration = Duration::from_secs(60);
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
                    complain(&error, "what is old could not be forgotten");
                    tokio::time::sleep(PACE).await;
                }
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
        self.core.sessions.forget_keys(now - KEYS_KEPT).await?;
        let logs = self.log.forget_deliveries(now - self.retention, BATCH).await?;
        Ok(erased.max(logs) >= usize::from(BATCH))
    }
}
