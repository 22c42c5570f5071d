//! Records the results of calls in batches: a batch is what arrived while the last one was written.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use domain::{id::WebhookId, webhook::DeliveryDecision};
use ports::{
    clock::Clock,
    delivery::{AttemptResult, DeliveryQueue, HealthUpdate},
    webhook_sender::{FailureCause, WebhookResponse},
};
use tokio::{sync::mpsc, time::Instant};

use super::claims::HeldClaim;
use crate::workers::log_error;

/// Maximum number of results in one statement.
const MAX_BATCH: usize = 256;
/// How long a write is retried. After that the leases are not renewed, and the deliveries are sent again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of endpoints that are remembered as failing.
const MAX_FAILING_ENDPOINTS: usize = 10_000;
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The result of a call, and whether the endpoint was failing before.
pub(super) struct CallOutcome {
    pub(super) settled: AttemptResult,
    /// Held until the result is stored.
    pub(super) claim: HeldClaim,
    pub(super) was_failing: bool,
}

pub(super) struct ResultWriter {
    pub(super) log: Arc<dyn DeliveryQueue>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) outcomes: mpsc::Receiver<CallOutcome>,
    /// Endpoints with a recorded failure and no success since.
    pub(super) failing: HashSet<WebhookId>,
}

impl ResultWriter {
    /// Runs until all senders are dropped.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while self.outcomes.recv_many(&mut batch, MAX_BATCH).await > 0 {
            let tallies = tallies(&batch, &self.failing);
            for tally in &tallies {
                if tally.failures > 0 && self.failing.len() < MAX_FAILING_ENDPOINTS {
                    self.failing.insert(tally.webhook);
                } else if tally.failures == 0 {
                    self.failing.remove(&tally.webhook);
                }
            }
            self.write(&batch).await;
            batch.clear();
            if let Err(error) = self.log.note_health(&tallies, self.clock.now()).await {
                log_error(&error, "failed to record the health of webhook endpoints");
            }
        }
    }

    async fn write(&self, batch: &[CallOutcome]) {
        let began = Instant::now();
        loop {
            let settled = batch.iter().map(|outcome| {
                let claim = outcome.claim.number();
                AttemptResult { claim, ..outcome.settled.clone() }
            });
            match self.log.settle_deliveries(&settled.collect::<Vec<_>>()).await {
                Ok(held) => {
                    let lost = held.iter().filter(|held| !**held).count();
                    if lost > 0 {
                        tracing::warn!(
                            "{lost} results were discarded: their leases had expired and other processes claimed the deliveries"
                        );
                    }
                    return;
                }
                Err(error) if began.elapsed() > WRITE_TIMEOUT => {
                    log_error(
                        &error,
                        "failed to record results of deliveries, giving up; the deliveries will be sent again",
                    );
                    return;
                }
                Err(error) => {
                    log_error(&error, "failed to record results of deliveries, retrying");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

/// Whether a call succeeded; `None` if it says nothing about the endpoint's health: no request was
/// sent, or the response was 410 Gone, which ends the delivery.
fn success(settled: &AttemptResult) -> Option<bool> {
    match settled.attempt.call.answer {
        WebhookResponse::Failed(FailureCause::Request)
        | WebhookResponse::Status { code: 410, .. } => None,
        WebhookResponse::Failed(_) | WebhookResponse::Status { .. } => {
            Some(settled.decision == DeliveryDecision::Delivered)
        }
    }
}

/// Updates to record: failures, and successes that follow failures.
fn tallies(batch: &[CallOutcome], failing: &HashSet<WebhookId>) -> Vec<HealthUpdate> {
    let mut tallies: HashMap<WebhookId, HealthUpdate> = HashMap::new();
    for CallOutcome { settled, was_failing, .. } in batch {
        let webhook = settled.webhook;
        let Some(success) = success(settled) else { continue };
        let is_healthy =
            !*was_failing && !failing.contains(&webhook) && !tallies.contains_key(&webhook);
        if success && is_healthy {
            continue;
        }
        let blank = HealthUpdate { webhook, failures: 0, success: false };
        let tally = tallies.entry(webhook).or_insert(blank);
        if success {
            (tally.failures, tally.success) = (0, true);
        } else {
            tally.failures = tally.failures.saturating_add(1);
        }
    }
    tallies.into_values().collect()
}
