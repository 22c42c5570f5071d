//! Deletes what is kept for a time: the data of sessions that closed long ago, the log of their
//! deliveries, idempotency keys, sign-ins, account links, known browsers and join codes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use ports::{
    account_links::AccountLinkStore, account_store::SignInStore, delivery_log::DeliveryLog,
    device_store::DeviceStore, known_browsers::KnownBrowserStore, session_store::SessionRetention,
};

use super::{Worker, log_error};
use crate::advance::{AdvanceError, SessionEngine};

const RETENTION_INTERVAL: Duration = Duration::from_secs(60);
const RETENTION_BATCH: u16 = 200;
/// How long idempotency keys are kept; they are honoured for a day.
const IDEMPOTENCY_KEY_RETENTION: TimeDelta = TimeDelta::hours(25);

/// Deletes expired data in batches.
pub struct Retention {
    pub engine: Arc<SessionEngine>,
    pub sessions: Arc<dyn SessionRetention>,
    pub devices: Arc<dyn DeviceStore>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub account_links: Arc<dyn AccountLinkStore>,
    pub known_browsers: Arc<dyn KnownBrowserStore>,
    pub deliveries: Arc<dyn DeliveryLog>,
    /// How long a closed session keeps its data.
    pub retention: TimeDelta,
}

#[async_trait]
impl Worker for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    async fn run(&self) {
        loop {
            match self.delete_batch().await {
                Ok(true) => (),
                Ok(false) => tokio::time::sleep(RETENTION_INTERVAL).await,
                Err(error) => {
                    log_error(&error, "failed to delete expired data, retrying");
                    tokio::time::sleep(RETENTION_INTERVAL).await;
                }
            }
        }
    }
}

impl Retention {
    /// Deletes one batch. Returns whether there may be more to delete.
    async fn delete_batch(&self) -> Result<bool, AdvanceError> {
        let sessions = &self.sessions;
        let now = self.engine.clock.now();
        let old = sessions.find_unerased(now - self.retention, RETENTION_BATCH).await?;
        let erased = old.len();
        for id in old {
            self.engine.erase(id).await?;
        }
        if !sessions.truncate_log().await? {
            tracing::debug!(
                "the database's log is not truncated while it is read; trying again later"
            );
        }
        sessions.delete_idempotency_keys(now - IDEMPOTENCY_KEY_RETENTION).await?;
        self.sign_ins.delete_expired_sign_ins(now).await?;
        self.account_links.delete_expired_links(now).await?;
        self.known_browsers.delete_expired_browsers(now).await?;
        self.devices.delete_expired_codes(now).await?;
        let old = self.deliveries.delete_old_deliveries(now - self.retention, RETENTION_BATCH);
        Ok(erased.max(old.await?) >= usize::from(RETENTION_BATCH))
    }
}
