//! Where webhooks are kept.

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
    /// Keeps a webhook; header value and secret are encrypted at rest. It is told of the sessions
    /// of these keys; of none: of all that the team has.
    async fn add_webhook(
        &self,
        webhook: &Webhook,
        keys: &[ApiKeyId],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    async fn webhook(&self, id: WebhookId) -> Result<Option<StoredWebhook>, StoreError>;

    /// The oldest first.
    async fn webhooks(&self, team: TeamId) -> Result<Vec<StoredWebhook>, StoreError>;

    /// Changes what a webhook was made with. One that gets another URL is no longer failing.
    /// Answers `false` where there is none.
    async fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError>;

    /// Answers `false` where there is none.
    async fn set_active(&self, id: WebhookId, active: bool) -> Result<bool, StoreError>;

    /// Gives a webhook a new secret, and says until when the old one signs too. Answers `false`
    /// where there is none.
    async fn rotate_secret(
        &self,
        id: WebhookId,
        fresh: &Secret,
        retiring: &RetiringSecret,
    ) -> Result<bool, StoreError>;

    /// Encrypts with the newest key what others closed, of so many webhooks after this one in the
    /// order of their identifiers.
    async fn reseal(
        &self,
        after: Option<WebhookId>,
        limit: u16,
    ) -> Result<Reencrypted<WebhookId>, StoreError>;
}

/// A webhook with what has become of it.
#[derive(Clone)]
pub struct StoredWebhook {
    pub webhook: Webhook,
    /// The keys whose sessions it is told of; none: all of the team's.
    pub keys: Vec<ApiKeyId>,
    pub health: EndpointHealth,
    pub created_at: DateTime<Utc>,
}

/// What a webhook is to be from now on.
#[derive(Clone)]
pub struct WebhookChange {
    pub url: String,
    pub header: HeaderChange,
    /// The keys whose sessions it is told of; none: all of the team's.
    pub keys: Vec<ApiKeyId>,
    pub timeout: Duration,
    pub retries: u8,
}

/// What becomes of a webhook's header, whose value nobody is shown.
#[derive(Clone)]
pub enum HeaderChange {
    Keep,
    Drop,
    Set(WebhookHeader),
}
