//! What became of deliveries, and what is done about it by hand.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::{DeliveryId, SessionId, WebhookId};

use crate::StoreError;

#[async_trait]
pub trait DeliveryLog: Send + Sync {
    /// Deliveries, the newest first.
    async fn find_deliveries(
        &self,
        find: &DeliveryFilter,
    ) -> Result<Vec<StoredDelivery>, StoreError>;

    /// A delivery with its attempts, in their order.
    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryWithAttempts>, StoreError>;

    /// Owes a delivery once more, with all of its attempts; what is owed already is due at once.
    /// Its identifier and its body stay. Answers `false` where there is none.
    async fn send_again(&self, id: DeliveryId, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Owes a webhook's exhausted deliveries of a time once more, up to `limit`; answers how many.
    async fn send_exhausted_again(
        &self,
        webhook: WebhookId,
        span: TimeRange,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError>;

    /// Owes a webhook a test, which has one attempt.
    async fn enqueue_test(
        &self,
        webhook: WebhookId,
        session: SessionId,
        body: &str,
        now: DateTime<Utc>,
    ) -> Result<DeliveryId, StoreError>;

    /// Forgets deliveries of before `before` with their attempts and bodies, but not what is owed
    /// still; up to `limit`. Answers how many.
    async fn delete_old_deliveries(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError>;
}

/// From the first moment up to, and without, the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

/// Which deliveries are looked for.
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
    /// Owed still.
    Pending,
    Delivered,
    /// Given up on.
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

/// A delivery, as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    pub id: DeliveryId,
    pub webhook: WebhookId,
    /// The session it is about; made up for a test.
    pub session: SessionId,
    pub test: bool,
    pub state: DeliveryState,
    pub created_at: DateTime<Utc>,
    /// When it is tried next, while it is owed.
    pub due: Option<DateTime<Utc>>,
}

/// An attempt, as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAttempt {
    /// Counts from 1.
    pub number: i32,
    pub at: DateTime<Utc>,
    pub took_ms: i32,
    /// What the receiver answered.
    pub status: Option<i32>,
    /// Why it did not: the class of what went wrong.
    pub error: Option<String>,
    /// The first 2 KiB of the answer.
    pub answer: String,
    /// The headers that were sent, a line each, without secrets.
    pub sent: String,
}
