//! Writes down what came of calls: all that came while the last ones were written, in one go.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use domain::{id::WebhookId, webhook::Verdict};
use ports::{
    clock::Clock,
    delivery::{DeliveryQueue, Settled, Tally},
    webhook_sender::{Answer, Cause},
};
use tokio::{sync::mpsc, time::Instant};

use crate::workers::complain;

/// The largest batch.
const BATCH: usize = 256;
/// How long what cannot be written is kept; the claims are lost by then, and others send again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Receivers that are remembered as failing.
const REMEMBERED: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(250);

/// An outcome, and whether the receiver had failed before.
pub(super) struct Outcome {
    pub(super) settled: Settled,
    pub(super) ailing: bool,
}

pub(super) struct Settler {
    pub(super) log: Arc<dyn DeliveryQueue>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) outcomes: mpsc::Receiver<Outcome>,
    /// Receivers whose failures this process has noted and no success since.
    pub(super) failing: HashSet<WebhookId>,
}

impl Settler {
    /// Ends when nobody is left who could bring an outcome.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.outcomes.recv_many(&mut batch, BATCH).await > 0 {
            let tallies = tallies(&batch, &self.failing);
            for tally in &tallies {
                if tally.failures > 0 && self.failing.len() < REMEMBERED {
                    self.failing.insert(tally.webhook);
                } else if tally.failures == 0 {
                    self.failing.remove(&tally.webhook);
                }
            }
            let settled: Vec<_> = batch.drain(..).map(|outcome| outcome.settled).collect();
            self.write(&settled).await;
            if let Err(error) = self.log.note_health(&tallies, self.clock.now()).await {
                complain(&error, "how receivers do could not be noted");
            }
        }
    }

    async fn write(&self, settled: &[Settled]) {
        let began = Instant::now();
        loop {
            match self.log.settle_deliveries(settled).await {
                Ok(held) => {
                    let lost = held.iter().filter(|held| !**held).count();
                    if lost > 0 {
                        tracing::warn!("{lost} deliveries were claimed by others meanwhile");
                    }
                    return;
                }
                Err(error) if began.elapsed() > PATIENCE => {
                    complain(&error, "deliveries could not be settled and will be sent again");
                    return;
                }
                Err(error) => {
                    complain(&error, "deliveries could not be settled, trying again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Whether an answer is a success; none where it says nothing about how a receiver does: there was
/// no call, or it answered that it is not the one to be told (410), which ends the delivery.
fn success(settled: &Settled) -> Option<bool> {
    match settled.attempt.call.answer {
        Answer::Failed(Cause::Request) | Answer::Status { code: 410, .. } => None,
        Answer::Failed(_) | Answer::Status { .. } => Some(settled.verdict == Verdict::Delivered),
    }
}

/// What has to be noted: failures, and successes after failures.
fn tallies(batch: &[Outcome], failing: &HashSet<WebhookId>) -> Vec<Tally> {
    let mut tallies: HashMap<WebhookId, Tally> = HashMap::new();
    for Outcome { settled, ailing } in batch {
        let webhook = settled.webhook;
        let Some(success) = success(settled) else { continue };
        let well = !*ailing && !failing.contains(&webhook) && !tallies.contains_key(&webhook);
        if success && well {
            continue;
        }
        let blank = Tally { webhook, failures: 0, success: false };
        let tally = tallies.entry(webhook).or_insert(blank);
        if success {
            (tally.failures, tally.success) = (0, true);
        } else {
            tally.failures = tally.failures.saturating_add(1);
        }
    }
    tallies.into_values().collect()
}
