//! The service that manages the webhooks of teams.

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

/// Manages webhooks and reads their delivery log.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait WebhookService: Send + Sync {
    /// Creates a webhook. Only this result contains its signing secret.
    async fn create(&self, webhook: NewWebhook) -> Result<StoredWebhook, WebhookError>;

    /// Checks a webhook as [`Self::create`] does, and creates nothing.
    async fn check(&self, webhook: &NewWebhook) -> Result<(), WebhookError>;

    /// Checks a change as [`Self::change`] does, and changes nothing.
    async fn check_change(&self, id: WebhookId, change: &WebhookChange)
    -> Result<(), WebhookError>;

    /// Returns a team's webhooks, the oldest first.
    async fn list(&self, team: TeamId) -> Result<Vec<StoredWebhook>, WebhookError>;

    /// Changes the configuration of a webhook. Pending deliveries use the new configuration.
    async fn change(&self, id: WebhookId, change: WebhookChange) -> Result<(), WebhookError>;

    /// Activates or deactivates a webhook. An inactive one gets no new deliveries, and its pending
    /// ones wait.
    async fn set_active(&self, id: WebhookId, active: bool) -> Result<(), WebhookError>;

    /// Replaces the secret of a webhook. Only this result contains the new secret. For the time of
    /// the overlap, deliveries are signed with both secrets.
    async fn rotate_secret(
        &self,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, WebhookError>;

    /// Enqueues a test delivery, of a fictitious session and with one attempt.
    async fn test(&self, id: WebhookId) -> Result<DeliveryId, WebhookError>;

    /// Returns the deliveries that match, the newest first.
    async fn deliveries(&self, filter: DeliveryFilter)
    -> Result<Vec<StoredDelivery>, WebhookError>;

    async fn delivery(&self, id: DeliveryId) -> Result<DeliveryWithAttempts, WebhookError>;

    /// Returns the body of a delivery as indented JSON, with `(redacted)` in the place of data about
    /// the applicant.
    async fn redacted_payload(&self, id: DeliveryId) -> Result<String, WebhookError>;

    /// Resends a delivery in any state.
    async fn send_again(&self, id: DeliveryId) -> Result<(), WebhookError>;

    /// Resends all exhausted deliveries of a time range and returns their number.
    async fn send_exhausted_again(
        &self,
        id: WebhookId,
        range: TimeRange,
    ) -> Result<usize, WebhookError>;
}

/// A webhook to be created.
pub struct NewWebhook {
    pub team: TeamId,
    pub url: String,
    pub header: Option<WebhookHeader>,
    /// The keys whose sessions the webhook receives; empty for all keys of the team.
    pub keys: Vec<ApiKeyId>,
    pub timeout: Duration,
    pub retries: u8,
    pub active: bool,
}

/// The new secret of a webhook.
pub struct Rotated {
    pub secret: Secret,
    /// The time until which the old secret also signs.
    pub old_until: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error("{0} not found")]
    NotFound(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
