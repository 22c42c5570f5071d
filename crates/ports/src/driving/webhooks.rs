//! What a team does with its webhooks.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, DeliveryId, TeamId, WebhookId},
    secret::Secret,
    webhook::WebhookHeader,
};

use crate::{
    StoreError,
    delivery_log::{DeliveryFilter, DeliveryWithAttempts, StoredDelivery, TimeRange},
    webhook_store::{StoredWebhook, WebhookChange},
};

/// Webhooks and their log, as their owners use them.
#[async_trait]
pub trait WebhookService: Send + Sync {
    /// Makes a webhook. The secret it signs with is shown in this answer alone.
    async fn create(&self, order: NewWebhook) -> Result<StoredWebhook, WebhookError>;

    /// A team's webhooks, the oldest first.
    async fn list(&self, team: TeamId) -> Result<Vec<StoredWebhook>, WebhookError>;

    /// Changes what a webhook was made with. What it is owed already goes where it says from now
    /// on.
    async fn change(&self, id: WebhookId, change: WebhookChange) -> Result<(), WebhookError>;

    /// While it is not active it is told nothing; what it is owed waits.
    async fn set_active(&self, id: WebhookId, active: bool) -> Result<(), WebhookError>;

    /// Gives a webhook a new secret, which is shown in this answer alone; deliveries are signed
    /// with both for a while.
    async fn rotate_secret(
        &self,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, WebhookError>;

    /// Owes a webhook a delivery of the usual shape about no session, with one attempt.
    async fn test(&self, id: WebhookId) -> Result<DeliveryId, WebhookError>;

    /// Deliveries, the newest first.
    async fn deliveries(&self, find: DeliveryFilter) -> Result<Vec<StoredDelivery>, WebhookError>;

    async fn delivery(&self, id: DeliveryId) -> Result<DeliveryWithAttempts, WebhookError>;

    /// Sends one delivery again, whatever became of it.
    async fn send_again(&self, id: DeliveryId) -> Result<(), WebhookError>;

    /// Sends all deliveries of a time again that were given up on; answers how many.
    async fn send_exhausted_again(
        &self,
        id: WebhookId,
        span: TimeRange,
    ) -> Result<usize, WebhookError>;
}

/// A webhook to be made.
pub struct NewWebhook {
    pub team: TeamId,
    pub url: String,
    pub header: Option<WebhookHeader>,
    /// The keys whose sessions it is told of; none: all of the team's.
    pub keys: Vec<ApiKeyId>,
    pub timeout: Duration,
    pub retries: u8,
    pub active: bool,
}

/// A secret that was just made.
pub struct Rotated {
    pub secret: Secret,
    /// Until when the old one signs too.
    pub old_until: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
