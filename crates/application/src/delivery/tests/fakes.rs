//! The endpoint of every webhook, and a queue that fails.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::WebhookId;
use memory_store::MemoryStore;
use ports::{
    StoreError,
    delivery::{
        AttemptResult, ClaimRef, ClaimRequest, ClaimedDeliveries, Delivery, DeliveryQueue,
        HealthUpdate,
    },
    webhook_sender::{WebhookRequest, WebhookResponse, WebhookSender},
};

use crate::testing::Script;

pub(super) fn status(code: u16) -> WebhookResponse {
    WebhookResponse::Status { code, body: String::new(), retry_after: None }
}

/// The endpoint of every webhook: answers 200 at once, unless its script says otherwise.
#[derive(Default)]
pub(super) struct Endpoint {
    pub(super) answers: Script<WebhookResponse>,
    pub(super) delays: Script<Duration>,
    bodies: Mutex<Vec<String>>,
    /// The webhook whose endpoint takes ten seconds for each call.
    slow: Option<WebhookId>,
    /// Calls to the slow endpoint so far.
    pub(super) slow_calls: AtomicU32,
}

impl Endpoint {
    /// An endpoint that takes ten seconds for each call of one webhook.
    pub(super) fn slow_for(webhook: WebhookId) -> Self {
        Self { slow: Some(webhook), ..Self::default() }
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl WebhookSender for Endpoint {
    async fn send(&self, delivery: &Delivery, _: DateTime<Utc>) -> WebhookRequest {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(delivery.body.clone());
        let answer = self.answers.next().unwrap_or_else(|| status(200));
        if self.slow == Some(delivery.webhook.id) {
            self.slow_calls.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        tokio::time::sleep(self.delays.next().unwrap_or_default()).await;
        WebhookRequest { sent: "{}".into(), answer }
    }
}

/// A queue that fails as often as its script says.
pub(super) struct Flaky {
    store: Arc<MemoryStore>,
    pub(super) failures: Script<()>,
}

impl Flaky {
    pub(super) fn new(store: Arc<MemoryStore>) -> Self {
        Self { store, failures: Script::default() }
    }

    fn check(&self) -> Result<(), StoreError> {
        self.failures.next().map_or(Ok(()), |()| Err(StoreError::new("use the queue", "broken")))
    }
}

#[async_trait]
impl DeliveryQueue for Flaky {
    async fn claim_deliveries(&self, ask: &ClaimRequest) -> Result<ClaimedDeliveries, StoreError> {
        self.check()?;
        self.store.claim_deliveries(ask).await
    }

    async fn renew_claims(
        &self,
        claims: &[ClaimRef],
        until: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.check()?;
        self.store.renew_claims(claims, until).await
    }

    async fn settle_deliveries(&self, settled: &[AttemptResult]) -> Result<Vec<bool>, StoreError> {
        self.check()?;
        self.store.settle_deliveries(settled).await
    }

    async fn note_health(
        &self,
        tallies: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.check()?;
        self.store.note_health(tallies, now).await
    }

    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError> {
        self.check()?;
        self.store.give_up(before, limit).await
    }
}
