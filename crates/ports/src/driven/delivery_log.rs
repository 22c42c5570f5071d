//! The log of deliveries, and resending them manually.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::{DeliveryId, SessionId, WebhookId};

use crate::StoreError;

#[async_trait]
pub trait DeliveryLog: Send + Sync {
    /// Returns the deliveries that match, the newest first.
    async fn find_deliveries(
        &self,
        filter: &DeliveryFilter,
    ) -> Result<Vec<StoredDelivery>, StoreError>;

    /// Returns a delivery with its attempts in order.
    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryWithAttempts>, StoreError>;

    /// Returns the body of a delivery, as it is sent.
    async fn delivery_body(&self, id: DeliveryId) -> Result<Option<String>, StoreError>;

    /// Enqueues a delivery again, with its full number of attempts; a pending one becomes due at
    /// once. Its identifier and its body stay the same. Returns `false` if it does not exist.
    async fn send_again(&self, id: DeliveryId, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Enqueues up to `limit` of a webhook's exhausted deliveries of a time range again, and returns
    /// their number.
    async fn send_exhausted_again(
        &self,
        webhook: WebhookId,
        range: TimeRange,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError>;

    /// Enqueues a test delivery, which has one attempt.
    async fn enqueue_test(
        &self,
        webhook: WebhookId,
        session: SessionId,
        body: &str,
        now: DateTime<Utc>,
    ) -> Result<DeliveryId, StoreError>;

    /// Deletes up to `limit` deliveries from before `before`, with their attempts and bodies, but no
    /// pending ones. Returns their number.
    async fn delete_old_deliveries(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError>;
}

/// A time range that includes `from` and excludes `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

/// A filter of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub of: DeliveryScope,
    pub state: Option<DeliveryState>,
    pub limit: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryScope {
    Webhook(WebhookId),
    Session(SessionId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// A further attempt is scheduled.
    Pending,
    Delivered,
    /// No further attempt is made automatically.
    Exhausted,
}

impl DeliveryState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Exhausted => "exhausted",
        }
    }
}

/// A delivery with its attempts.
pub type DeliveryWithAttempts = (StoredDelivery, Vec<StoredAttempt>);

/// A delivery in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    pub id: DeliveryId,
    pub webhook: WebhookId,
    /// The session of the delivery; a fictitious one for a test.
    pub session: SessionId,
    pub test: bool,
    pub state: DeliveryState,
    pub created_at: DateTime<Utc>,
    /// The time of the next attempt, while the delivery is pending.
    pub due: Option<DateTime<Utc>>,
}

/// An attempt in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The number of the attempt, from 1.
    pub number: i32,
    pub at: DateTime<Utc>,
    pub took_ms: i32,
    /// The status code of the response.
    pub status: Option<i32>,
    /// The class of the failure, if there was no response.
    pub error: Option<String>,
    /// The first 2 KiB of the response.
    pub answer: String,
    /// The sent headers, one per line, without secrets.
    pub sent: String,
}
