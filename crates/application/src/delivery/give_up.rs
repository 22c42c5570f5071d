//! Gives up on deliveries that are too old to be sent.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::webhook::MAX_DELIVERY_AGE;
use ports::{clock::Clock, delivery::DeliveryQueue};

use crate::workers::{Worker, log_error};

const GIVE_UP_INTERVAL: Duration = Duration::from_secs(60);
const GIVE_UP_BATCH: u16 = 500;
/// Time beyond the maximum age in which the dispatcher exhausts a delivery itself.
const GRACE_PERIOD: TimeDelta = TimeDelta::hours(1);

/// Ends deliveries that no process has attempted in time.
pub struct DeliveryGiveUp {
    pub queue: Arc<dyn DeliveryQueue>,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Worker for DeliveryGiveUp {
    fn name(&self) -> &'static str {
        "old deliveries"
    }

    async fn run(&self) {
        loop {
            let before = self.clock.now() - MAX_DELIVERY_AGE - GRACE_PERIOD;
            match self.queue.give_up(before, GIVE_UP_BATCH).await {
                Ok(0) => tokio::time::sleep(GIVE_UP_INTERVAL).await,
                Ok(count) => {
                    let given_up = u64::try_from(count).unwrap_or(u64::MAX);
                    metrics::counter!("avouch_deliveries_exhausted_total").increment(given_up);
                    tracing::warn!("gave up {count} deliveries that were too old");
                }
                Err(error) => {
                    log_error(&error, "failed to give up old deliveries, retrying");
                    tokio::time::sleep(GIVE_UP_INTERVAL).await;
                }
            }
        }
    }
}
