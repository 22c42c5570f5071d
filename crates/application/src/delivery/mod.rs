//! Webhook dispatch: claims due deliveries, calls the endpoints, records the results.
//!
//! No database connection is held during a call. A claim is a lease that is renewed during the call: if
//! this process dies, the lease expires and another process sends the delivery. An endpoint may receive a delivery twice; none is
//! lost (at-least-once delivery).

mod claims;
mod concurrency;
mod give_up;
mod result_writer;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use domain::{
    id::WebhookId,
    webhook::{AttemptContext, Backoff, DeliveryDecision, ResponseSummary},
};
use ports::{
    clock::Clock,
    delivery::{AttemptResult, ClaimedDeliveries, Delivery, DeliveryAttempt, DeliveryQueue},
    random::RandomSource,
    webhook_sender::{FailureCause, WebhookResponse, WebhookSender},
};
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::task::TaskTracker;

pub use self::give_up::DeliveryGiveUp;
use self::{
    claims::{HeldClaim, HeldClaims},
    concurrency::{CallResult, ConcurrencyLimits},
    result_writer::{CallOutcome, ResultWriter},
};
use crate::{
    session_traces::SessionTraces,
    workers::{Worker, log_error},
};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Calls that complete within this time are replaced by a single claim.
const GATHER_DELAY: Duration = Duration::from_millis(1);
/// Capacity of the channel to the result writer; a full channel slows dispatch down.
const MAX_UNWRITTEN_RESULTS: usize = 2048;

/// Dispatches deliveries to the endpoints of partners.
#[derive(Clone)]
pub struct WebhookDispatcher {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
    /// Notified when deliveries may have been saved.
    pub wakeup: Arc<Notify>,
    pub queue: Arc<dyn DeliveryQueue>,
    /// The same queue over a second connection, so that results are written while the next
    /// deliveries are claimed.
    pub log: Arc<dyn DeliveryQueue>,
    pub sender: Arc<dyn WebhookSender>,
    pub backoff: Backoff,
    pub tasks: TaskTracker,
    pub traces: SessionTraces,
}

/// A delivery with its claim.
struct HeldDelivery {
    delivery: Delivery,
    claim: HeldClaim,
}

/// State shared by all running calls.
#[derive(Default)]
struct InFlight {
    limits: Mutex<ConcurrencyLimits<HeldDelivery>>,
    claims: Arc<HeldClaims>,
    /// Notified when capacity becomes free that a claim can use.
    capacity: Notify,
}

impl InFlight {
    fn limits(&self) -> MutexGuard<'_, ConcurrencyLimits<HeldDelivery>> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, webhook: WebhookId) -> Option<HeldDelivery> {
        let mut limits = self.limits();
        let next = limits.next(webhook, Instant::now().into_std());
        metrics::gauge!("avouch_deliveries_in_flight").set(f64::from(limits.in_flight()));
        next
    }
}

/// Position of the current pass over all webhooks, which may take several claims.
#[derive(Default)]
struct ClaimCursor {
    after: Option<WebhookId>,
    /// Whether any claim of this pass returned deliveries.
    claimed_any: bool,
}

impl ClaimCursor {
    /// Moves past a claim. Returns whether to claim again without waiting: in the middle of a pass,
    /// and after a pass of several claims that returned deliveries, because more may have become due
    /// for the webhooks at its start.
    const fn advance(&mut self, claimed: bool, next: Option<WebhookId>) -> bool {
        let is_first = self.after.is_none();
        self.claimed_any = claimed || self.claimed_any && !is_first;
        self.after = next;
        next.is_some() || self.claimed_any && !is_first
    }
}

#[async_trait]
impl Worker for WebhookDispatcher {
    fn name(&self) -> &'static str {
        "deliveries"
    }

    /// Runs until it is dropped. Calls that are running then still complete.
    async fn run(&self) {
        let (send, outcomes) = mpsc::channel(MAX_UNWRITTEN_RESULTS);
        let (log, clock) = (self.log.clone(), self.clock.clone());
        let failing = HashSet::new();
        let in_flight = Arc::new(InFlight::default());
        let claims = in_flight.claims.clone();
        self.tasks.spawn(async move {
            let writer = ResultWriter { log: log.clone(), clock: clock.clone(), outcomes, failing };
            tokio::select! {
                () = writer.run() => (),
                () = claims.renew(&*log, &*clock) => (),
            }
        });
        metrics::gauge!("avouch_deliveries_in_flight").set(0.0);
        let mut cursor = ClaimCursor::default();
        loop {
            match self.claim(&in_flight, &mut cursor, &send).await {
                Ok(true) => (),
                Ok(false) => tokio::select! {
                    () = in_flight.capacity.notified() => tokio::time::sleep(GATHER_DELAY).await,
                    () = self.wakeup.notified() => (),
                    () = tokio::time::sleep(POLL_INTERVAL) => (),
                },
                Err(error) => {
                    log_error(&error, "failed to claim deliveries, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }
}

impl WebhookDispatcher {
    /// Claims once and starts calls. Returns whether to claim again without waiting.
    async fn claim(
        &self,
        in_flight: &Arc<InFlight>,
        cursor: &mut ClaimCursor,
        send: &mpsc::Sender<CallOutcome>,
    ) -> Result<bool, ports::StoreError> {
        let ask = in_flight.limits().ask(self.clock.now(), cursor.after);
        let Some(ask) = ask else { return Ok(false) };
        let ClaimedDeliveries { deliveries, next } = self.queue.claim_deliveries(&ask).await?;
        let mut claimed = HashMap::<_, u16>::new();
        for delivery in deliveries {
            let webhook = delivery.webhook.id;
            let count = claimed.entry(webhook).or_default();
            *count = count.saturating_add(1);
            let Some(claim) = in_flight.claims.hold(&delivery) else { continue };
            let held = HeldDelivery { delivery, claim };
            in_flight.limits().on_claimed(webhook, held, Instant::now().into_std());
            self.spawn_ready(in_flight, webhook, send);
        }
        if in_flight.limits().note_claimed(&ask, &claimed, next) {
            in_flight.capacity.notify_one();
        }
        Ok(cursor.advance(!claimed.is_empty(), next))
    }

    /// Starts calls to an endpoint up to its concurrency limit.
    fn spawn_ready(
        &self,
        in_flight: &Arc<InFlight>,
        webhook: WebhookId,
        send: &mpsc::Sender<CallOutcome>,
    ) {
        while let Some(held) = in_flight.next(webhook) {
            let (me, in_flight, send) = (self.clone(), in_flight.clone(), send.clone());
            self.tasks.spawn(async move { me.run_delivery(&in_flight, held, &send).await });
        }
    }

    /// Makes a call, then calls for the claimed deliveries that wait for its slot.
    async fn run_delivery(
        &self,
        in_flight: &Arc<InFlight>,
        first: HeldDelivery,
        send: &mpsc::Sender<CallOutcome>,
    ) {
        let mut next = Some(first);
        while let Some(HeldDelivery { delivery, claim }) = next {
            let webhook = delivery.webhook.id;
            let outcome = self.call(&delivery, claim).await;
            let attempt = &outcome.settled.attempt;
            let result = classify(&attempt.call.answer);
            if in_flight.limits().on_completed(webhook, result, attempt.took) {
                in_flight.capacity.notify_one();
            }
            // The channel is full only if the database is slower than all endpoints together. The
            // next delivery is taken after this wait, because it is dropped if it waits for too long.
            let _ = send.send(outcome).await;
            next = in_flight.next(webhook);
            // A success raises the endpoint's limit by one.
            self.spawn_ready(in_flight, webhook, send);
        }
    }

    async fn call(&self, delivery: &Delivery, claim: HeldClaim) -> CallOutcome {
        let (at, began) = (self.clock.now(), Instant::now());
        let waited = (at - delivery.due).to_std().unwrap_or_default();
        metrics::histogram!("avouch_delivery_wait_seconds").record(waited);
        let call = self.sender.send(delivery, at).await;
        let took = began.elapsed();
        let verdict = self.judge(delivery, &call.answer);
        log_attempt(delivery, &call.answer);
        if verdict == DeliveryDecision::Exhausted && !delivery.is_test {
            metrics::counter!("avouch_deliveries_exhausted_total").increment(1);
        }
        let attempt = DeliveryAttempt { at, took, call };
        self.traces.attempted(delivery, &attempt);
        let (webhook, number) = (delivery.webhook.id, delivery.claim);
        let settled = AttemptResult {
            delivery: delivery.id,
            webhook,
            claim: number,
            attempt,
            decision: verdict,
        };
        CallOutcome { settled, claim, was_failing: delivery.endpoint_failing }
    }

    fn judge(&self, delivery: &Delivery, answer: &WebhookResponse) -> DeliveryDecision {
        let reply = match answer {
            WebhookResponse::Status { code, retry_after, .. } => {
                ResponseSummary { code: Some(*code), retry_after: *retry_after }
            }
            WebhookResponse::Failed(_) => ResponseSummary { code: None, retry_after: None },
        };
        let effort = AttemptContext {
            tries: delivery.attempts.saturating_add(1),
            retries: if delivery.is_test { 0 } else { delivery.webhook.retries },
            since: delivery.created_at,
        };
        effort.decide(reply, self.backoff, self.random.random_u16(), self.clock.now())
    }
}

const fn classify(answer: &WebhookResponse) -> CallResult {
    match answer {
        WebhookResponse::Status { code: 200..=299, .. } => CallResult::Success,
        WebhookResponse::Status { code: 429 | 502..=504, .. } => CallResult::Overloaded,
        WebhookResponse::Failed(FailureCause::Timeout) => CallResult::Overloaded,
        WebhookResponse::Status { .. } | WebhookResponse::Failed(_) => CallResult::Refused,
    }
}

fn log_attempt(delivery: &Delivery, answer: &WebhookResponse) {
    let (id, session, n) = (delivery.id, delivery.session, delivery.attempts.saturating_add(1));
    let outcome = match answer {
        WebhookResponse::Status { code: 200..=299, .. } => "delivered",
        WebhookResponse::Status { .. } => "refused",
        WebhookResponse::Failed(cause) => cause.as_str(),
    };
    metrics::counter!("avouch_delivery_attempts_total", "outcome" => outcome).increment(1);
    match answer {
        WebhookResponse::Status { code: code @ 200..=299, .. } => tracing::debug!(
            delivery.id = %id, session.id = %session,
            "attempt {n} of delivery {id} was answered {code}"
        ),
        WebhookResponse::Status { code, .. } => tracing::info!(
            delivery.id = %id, session.id = %session,
            "attempt {n} of delivery {id} was answered {code}"
        ),
        WebhookResponse::Failed(cause) => tracing::warn!(
            delivery.id = %id, session.id = %session, class = cause.as_str(),
            "attempt {n} of delivery {id} failed"
        ),
    }
}

#[cfg(test)]
mod tests;
