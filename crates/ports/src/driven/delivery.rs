//! Deliveries that partners are owed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{DeliveryId, SessionId, WebhookId},
    webhook::{DeliveryDecision, Webhook},
};

use crate::{StoreError, webhook_sender::WebhookRequest};

/// Added to a webhook's own timeout, this is how long a claim lasts: a receiver that takes all of
/// its time is not called twice.
pub const CLAIM_MARGIN: TimeDelta = TimeDelta::seconds(15);

/// The queue of deliveries. Filled by the session store when a session ends, and by whoever sends
/// something again or tries a webhook out.
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Leases due deliveries, webhook after webhook, so that none is passed over however much
    /// another one is owed. Nothing is leased of webhooks that are inactive or in a pause; of one
    /// that is being tried out, one delivery, where the claimer has none of it. A claim lasts for the webhook's timeout and
    /// [`CLAIM_MARGIN`], then it is handed out again.
    async fn claim_deliveries(&self, ask: &ClaimRequest) -> Result<ClaimedDeliveries, StoreError>;

    /// Writes attempts down and ends their claims. Answers for each whether it was still held;
    /// nothing is written of those that were not.
    async fn settle_deliveries(&self, settled: &[AttemptResult]) -> Result<Vec<bool>, StoreError>;

    /// Keeps count of how receivers answered. A success ends what failures began.
    async fn note_health(
        &self,
        tallies: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Gives up on what has been owed since before `before` and is not being sent; up to `limit`.
    /// Answers how many.
    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError>;
}

/// What a claimer has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub now: DateTime<Utc>,
    /// Goes on after this webhook, in the order of identifiers; none: from the first.
    pub after: Option<WebhookId>,
    /// The most deliveries in all.
    pub limit: u16,
    /// The most of a webhook that is not named in `room`.
    pub each: u16,
    pub room: Vec<EndpointCapacity>,
}

/// What a claimer has room for of one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointCapacity {
    pub webhook: WebhookId,
    pub most: u16,
    /// Whether it has some of it in hand: who is tried out is given no second one.
    pub busy: bool,
}

/// What was claimed, and where to go on; none: from the first again.
pub struct ClaimedDeliveries {
    pub deliveries: Vec<Delivery>,
    pub next: Option<WebhookId>,
}

/// One webhook's notice of one session, claimed.
#[derive(Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub session: SessionId,
    pub webhook: Arc<Webhook>,
    /// Whether the receiver failed when it was last tried.
    pub endpoint_failing: bool,
    /// The exact bytes of the body; the same in each attempt.
    pub body: String,
    /// Attempts that were made since it was owed, or sent again.
    pub attempts: u32,
    /// Whether it has one attempt, as a test.
    pub is_test: bool,
    /// When it began to be owed, or was sent again.
    pub created_at: DateTime<Utc>,
    /// When it became due.
    pub due: DateTime<Utc>,
    /// The fence against a lost claim.
    pub claim: i32,
}

/// What came of one POST, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub delivery: DeliveryId,
    pub webhook: WebhookId,
    pub claim: i32,
    pub attempt: DeliveryAttempt,
    pub verdict: DeliveryDecision,
}

/// What came of one POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub at: DateTime<Utc>,
    pub took: Duration,
    pub call: WebhookRequest,
}

/// How a webhook's receiver answered a few times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthUpdate {
    pub webhook: WebhookId,
    /// Failures since the last success, or of all where none succeeded.
    pub failures: u32,
    /// Whether one of them was a success.
    pub success: bool,
}
