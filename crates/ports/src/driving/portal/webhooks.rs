//! The service that manages a team's webhooks in the portal.

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

/// Manages a team's webhooks and reads their deliveries.
#[async_trait]
pub trait TeamWebhookService: Send + Sync {
    /// Returns the team's webhooks, the oldest first.
    async fn webhooks(&self, user: &SignedInUser) -> Result<Vec<StoredWebhook>, PortalError>;

    async fn webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError>;

    /// Creates a webhook for the user's team; the team in `webhook` is ignored. Only this result
    /// contains the signing secret.
    async fn make_webhook(
        &self,
        user: &SignedInUser,
        webhook: NewWebhook,
    ) -> Result<StoredWebhook, PortalError>;

    async fn change_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<(), PortalError>;

    /// Activates or deactivates a webhook. An inactive one gets no new deliveries, and its pending
    /// ones wait.
    async fn switch_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        active: bool,
    ) -> Result<(), PortalError>;

    /// Replaces the secret of a webhook. Only this result contains the new secret; the old one also
    /// signs for the time of `overlap`.
    async fn rotate_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, PortalError>;

    /// Enqueues a test delivery, which has one attempt.
    async fn test_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
    ) -> Result<DeliveryId, PortalError>;

    /// Returns the latest deliveries of a webhook, the newest first.
    async fn webhook_deliveries(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        state: Option<DeliveryState>,
    ) -> Result<Vec<StoredDelivery>, PortalError>;

    /// Returns the deliveries of a session to the team's webhooks, the newest first.
    async fn session_deliveries(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<Vec<StoredDelivery>, PortalError>;

    async fn webhook_delivery(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError>;

    /// Returns the body of a delivery as indented JSON, with `(redacted)` in the place of data about
    /// the applicant.
    async fn delivery_payload(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<String, PortalError>;

    /// Resends a delivery in any state.
    async fn send_delivery_again(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<(), PortalError>;

    /// Resends all exhausted deliveries of a webhook in a time range and returns their number.
    async fn send_all_again(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        range: TimeRange,
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
