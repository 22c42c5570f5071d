//! The store of webhooks.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, TeamId, WebhookId},
    secret::Secret,
    webhook::{EndpointHealth, RetiringSecret, Webhook, WebhookHeader},
};

use crate::{Reencrypted, StoreError};

#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Stores a webhook; header value and secret are encrypted at rest. It receives the sessions of
    /// these keys; with an empty list, those of all keys of the team.
    async fn add_webhook(
        &self,
        webhook: &Webhook,
        keys: &[ApiKeyId],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    async fn webhook(&self, id: WebhookId) -> Result<Option<StoredWebhook>, StoreError>;

    /// Returns a team's webhooks, the oldest first.
    async fn webhooks(&self, team: TeamId) -> Result<Vec<StoredWebhook>, StoreError>;

    /// Changes the configuration of a webhook. A new URL resets the health of the endpoint. Returns
    /// `false` if the webhook does not exist.
    async fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError>;

    /// Activates or deactivates a webhook. Returns `false` if it does not exist.
    async fn set_active(&self, id: WebhookId, active: bool) -> Result<bool, StoreError>;

    /// Replaces the secret of a webhook, and sets until when the old one also signs. Returns `false`
    /// if the webhook does not exist.
    async fn rotate_secret(
        &self,
        id: WebhookId,
        new: &Secret,
        retiring: &RetiringSecret,
    ) -> Result<bool, StoreError>;

    /// Encrypts values that an earlier key encrypted with the newest one, for up to `limit` webhooks
    /// after this one in the order of their identifiers.
    async fn reseal(
        &self,
        after: Option<WebhookId>,
        limit: u16,
    ) -> Result<Reencrypted<WebhookId>, StoreError>;
}

/// A stored webhook with the health of its endpoint.
#[derive(Clone)]
pub struct StoredWebhook {
    pub webhook: Webhook,
    /// The keys whose sessions the webhook receives; empty for all keys of the team.
    pub keys: Vec<ApiKeyId>,
    pub health: EndpointHealth,
    pub created_at: DateTime<Utc>,
}

/// The new configuration of a webhook.
#[derive(Clone)]
pub struct WebhookChange {
    pub url: String,
    pub header: HeaderChange,
    /// The keys whose sessions the webhook receives; empty for all keys of the team.
    pub keys: Vec<ApiKeyId>,
    pub timeout: Duration,
    pub retries: u8,
}

/// The change of a webhook's header, whose value is never shown.
#[derive(Clone)]
pub enum HeaderChange {
    Keep,
    Drop,
    Set(WebhookHeader),
}
