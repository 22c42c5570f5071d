//! The queue of pending deliveries.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{DeliveryId, SessionId, WebhookId},
    webhook::{DeliveryDecision, Webhook},
};

use crate::{StoreError, webhook_sender::WebhookRequest};

/// How long a claim lasts unless it is renewed.
pub const CLAIM_TTL: TimeDelta = TimeDelta::seconds(6);

/// The queue of deliveries. The session store fills it when a session ends; resent deliveries and
/// tests of a webhook are added as well.
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Leases due deliveries, webhook after webhook, so that a webhook with many pending deliveries
    /// delays no other one. Nothing is leased for webhooks that are inactive or paused. For a
    /// half-open one a single delivery is leased, unless the caller already has one of it. A claim
    /// lasts for [`CLAIM_TTL`] unless it is renewed; then the delivery is leased again.
    async fn claim_deliveries(
        &self,
        request: &ClaimRequest,
    ) -> Result<ClaimedDeliveries, StoreError>;

    /// Extends claims to `until`. Those that were lost or have ended are left alone; those that have
    /// expired are held again if nobody else has claimed their deliveries.
    async fn renew_claims(
        &self,
        claims: &[ClaimRef],
        until: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Stores attempts and ends their claims. Returns for each whether its claim was still held; an
    /// attempt whose claim was lost is not stored.
    async fn settle_deliveries(&self, results: &[AttemptResult]) -> Result<Vec<bool>, StoreError>;

    /// Updates the health of endpoints. A success resets the consecutive failures.
    async fn note_health(
        &self,
        updates: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Marks up to `limit` deliveries as exhausted that have been pending since before `before` and
    /// are not being sent. Returns their number.
    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError>;
}

/// The capacity of a caller that claims deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    pub now: DateTime<Utc>,
    /// The webhook to continue after, in the order of identifiers; `None` to start with the first.
    pub after: Option<WebhookId>,
    /// The maximum number of deliveries in total.
    pub limit: u16,
    /// The maximum number for each webhook that is not in `capacities`.
    pub each: u16,
    pub capacities: Vec<EndpointCapacity>,
}

/// The capacity of a caller for one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointCapacity {
    pub webhook: WebhookId,
    pub most: u16,
    /// Whether the caller has a delivery of the webhook: a half-open one gets no second one.
    pub busy: bool,
}

/// The claimed deliveries and the webhook to continue after; `None` to start with the first again.
pub struct ClaimedDeliveries {
    pub deliveries: Vec<Delivery>,
    pub next: Option<WebhookId>,
}

/// A claimed delivery of one session to one webhook.
#[derive(Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub session: SessionId,
    pub webhook: Arc<Webhook>,
    /// Whether the last attempt at the endpoint failed.
    pub endpoint_failing: bool,
    /// The exact bytes of the body, the same in each attempt.
    pub body: String,
    /// The number of attempts since the delivery was created or resent.
    pub attempts: u32,
    /// Whether the delivery is a test, which has one attempt.
    pub is_test: bool,
    /// When the delivery was created or resent.
    pub created_at: DateTime<Utc>,
    /// When the delivery became due.
    pub due: DateTime<Utc>,
    /// The fence against a lost claim.
    pub claim: i32,
}

/// A claim of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimRef {
    pub delivery: DeliveryId,
    /// [`Delivery::claim`].
    pub claim: i32,
}

/// The result of an attempt, and the decision that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub delivery: DeliveryId,
    pub webhook: WebhookId,
    pub claim: i32,
    pub attempt: DeliveryAttempt,
    pub decision: DeliveryDecision,
}

/// An attempt: one POST request and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub at: DateTime<Utc>,
    pub took: Duration,
    pub call: WebhookRequest,
}

/// The results of several attempts at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthUpdate {
    pub webhook: WebhookId,
    /// The number of failures since the last success, or of all failures without a success.
    pub failures: u32,
    /// Whether one of the attempts succeeded.
    pub success: bool,
}
