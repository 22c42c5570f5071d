//! Where webhooks are kept.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{id::TeamId, webhook::Webhook};

use crate::StoreError;

#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Keeps a webhook; header value and secret are encrypted at rest.
    async fn add_webhook(&self, webhook: &Webhook, now: DateTime<Utc>) -> Result<(), StoreError>;

    async fn webhooks(&self, team: TeamId) -> Result<Vec<Webhook>, StoreError>;
}
