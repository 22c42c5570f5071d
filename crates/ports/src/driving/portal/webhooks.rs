//! What people do with their team's webhooks in the portal.

use std::time::Duration;

use async_trait::async_trait;
use domain::id::{DeliveryId, SessionId, WebhookId};

use super::{
    super::webhooks::{NewWebhook, Rotated, WebhookError},
    PortalError, SignedInUser,
};
use crate::{
    delivery_log::{DeliveryState, DeliveryWithAttempts, StoredDelivery, TimeRange},
    webhook_store::{StoredWebhook, WebhookChange},
};

/// A team's webhooks and what they were sent.
#[async_trait]
pub trait TeamWebhookService: Send + Sync {
    /// The oldest first.
    async fn webhooks(&self, visitor: &SignedInUser) -> Result<Vec<StoredWebhook>, PortalError>;

    async fn webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError>;

    /// Makes a webhook for the visitor's team, whatever team the order names. The secret it signs
    /// with is shown in this answer alone.
    async fn make_webhook(
        &self,
        visitor: &SignedInUser,
        order: NewWebhook,
    ) -> Result<StoredWebhook, PortalError>;

    async fn change_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<(), PortalError>;

    /// While it is off it is told nothing; what it is owed waits.
    async fn switch_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        active: bool,
    ) -> Result<(), PortalError>;

    /// Gives a webhook a new secret, which is shown in this answer alone; the old one signs too
    /// for as long as `overlap`.
    async fn rotate_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, PortalError>;

    /// Owes a webhook a test, which has one attempt.
    async fn test_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
    ) -> Result<DeliveryId, PortalError>;

    /// The latest deliveries of a webhook, the newest first.
    async fn webhook_deliveries(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        state: Option<DeliveryState>,
    ) -> Result<Vec<StoredDelivery>, PortalError>;

    /// What the team's webhooks were told of a session, the newest first.
    async fn session_deliveries(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<Vec<StoredDelivery>, PortalError>;

    async fn webhook_delivery(
        &self,
        visitor: &SignedInUser,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError>;

    /// Sends a delivery again, whatever became of it.
    async fn send_delivery_again(
        &self,
        visitor: &SignedInUser,
        id: DeliveryId,
    ) -> Result<(), PortalError>;

    /// Sends what a webhook was given up on again; answers how many.
    async fn send_all_again(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        span: TimeRange,
    ) -> Result<usize, PortalError>;
}

impl From<WebhookError> for PortalError {
    fn from(error: WebhookError) -> Self {
        match error {
            WebhookError::NotFound(what) => Self::NotFound(what),
            WebhookError::Invalid(why) => Self::Invalid(why),
            WebhookError::Store(error) => Self::Store(error),
        }
    }
}
