//! Deletes what is kept for a time: the data of sessions that closed long ago, later the sessions
//! themselves, the log of deliveries, idempotency keys, sign-ins, account links, known browsers and join codes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use ports::{
    StoreError,
    account_links::AccountLinkStore,
    account_store::SignInStore,
    delivery_log::DeliveryLog,
    device_store::DeviceStore,
    known_browsers::KnownBrowserStore,
    session_store::{ClosedSession, SessionRetention},
};
use tokio::time::Instant;

use super::Worker;
use crate::advance::SessionEngine;

const RETENTION_INTERVAL: Duration = Duration::from_secs(60);
const RETENTION_BATCH: u16 = 200;
/// Sessions are counted a day after their creation. All processes go by one clock, which is set back by half a
/// day at most.
const COUNTED_AFTER: TimeDelta = TimeDelta::days(1);
const COUNTED_KEYS: u16 = 10;
/// How long keys are counted in one minute; what is under way is finished.
const COUNTING_TIME: Duration = Duration::from_secs(15);
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
    /// How long a session is known after its creation; not shorter than `retention`.
    pub session_retention: TimeDelta,
}

#[async_trait]
impl Worker for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    async fn run(&self) {
        let mut erased_to = None;
        loop {
            let began = Instant::now();
            self.maintain().await;
            while self.delete_batch(&mut erased_to).await {
                if began.elapsed() >= RETENTION_INTERVAL {
                    break;
                }
            }
            tokio::time::sleep_until(began + RETENTION_INTERVAL).await;
        }
    }
}

impl Retention {
    fn forgotten(&self) -> DateTime<Utc> {
        let now = self.engine.clock.now();
        now - self.session_retention.max(IDEMPOTENCY_KEY_RETENTION)
    }

    /// Counts sessions for the totals of lists, creates and drops what is kept by the month, and truncates
    /// the log of the database.
    async fn maintain(&self) {
        let now = self.engine.clock.now();
        let began = Instant::now();
        while began.elapsed() < COUNTING_TIME {
            let counted = self.sessions.count_sessions(now, now - COUNTED_AFTER, COUNTED_KEYS);
            let counted = done(counted.await, "count sessions");
            if counted.is_none_or(|keys| keys < usize::from(COUNTED_KEYS)) {
                break;
            }
        }
        let maintained = self.sessions.maintain_partitions(now, self.forgotten()).await;
        done(maintained, "maintain the partitions of the timeline");
        if done(self.sessions.truncate_log().await, "truncate the log of the database")
            == Some(false)
        {
            tracing::debug!(
                "the database's log is not truncated while it is read; trying again later"
            );
        }
    }

    /// Deletes one batch. Returns whether there may be more to delete. What fails keeps nothing else from
    /// being deleted, and is tried again a minute later or, if there is more to erase than that takes, once
    /// the rest was.
    async fn delete_batch(&self, erased_to: &mut Option<ClosedSession>) -> bool {
        let now = self.engine.clock.now();
        // First, since erasing a session writes the bodies of its deliveries anew.
        let old =
            self.deliveries.delete_old_deliveries(now - self.retention, RETENTION_BATCH).await;
        let old = done(old, "delete deliveries").unwrap_or(0);
        let found = self.erase_batch(now - self.retention, erased_to).await;
        let keys = self.sessions.delete_idempotency_keys(now - IDEMPOTENCY_KEY_RETENTION).await;
        done(keys, "delete idempotency keys");
        let deleted = self.sessions.delete_erased_sessions(self.forgotten(), RETENTION_BATCH).await;
        let deleted = done(deleted, "delete sessions").unwrap_or(0);
        done(self.sign_ins.delete_expired_sign_ins(now).await, "delete sign-ins");
        done(self.account_links.delete_expired_links(now).await, "delete account links");
        done(self.known_browsers.delete_expired_browsers(now).await, "delete known browsers");
        done(self.devices.delete_expired_codes(now).await, "delete join codes");
        found.max(deleted).max(old) >= usize::from(RETENTION_BATCH)
    }

    /// Erases the data of sessions that closed before a time, behind those that were tried before; begins
    /// again after the last one. Returns how many it found.
    async fn erase_batch(
        &self,
        closed_before: DateTime<Utc>,
        erased_to: &mut Option<ClosedSession>,
    ) -> usize {
        let found = self.sessions.find_unerased(closed_before, *erased_to, RETENTION_BATCH).await;
        let found = done(found, "find sessions to erase").unwrap_or_default();
        for ClosedSession { id, .. } in &found {
            if let Err(error) = self.engine.erase(*id).await {
                let error: &dyn std::error::Error = &error;
                tracing::error!(session.id = %id, error, "failed to erase the data of a session, retrying");
            }
        }
        let full = found.len() >= usize::from(RETENTION_BATCH);
        *erased_to = found.last().copied().filter(|_| full);
        found.len()
    }
}

/// Logs a failure, after which the next step follows.
fn done<T>(result: Result<T, StoreError>, what: &'static str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "failed to {what}, retrying");
            None
        }
    }
}
