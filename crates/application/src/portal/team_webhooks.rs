//! The webhooks of a team, and their deliveries.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{
    account::Permission,
    id::{DeliveryId, SessionId, WebhookId},
    reauthentication::SensitiveAction,
};
use ports::{
    clock::Clock,
    delivery_log::{
        DeliveryFilter, DeliveryScope, DeliveryState, DeliveryWithAttempts, StoredDelivery,
        TimeRange,
    },
    driving::{
        NewWebhook, PortalError, Rotated, SignedInUser, TeamWebhookService, WebhookError,
        WebhookService,
    },
    webhook_store::{StoredWebhook, WebhookChange, WebhookStore},
};
use tokio::sync::Notify;

use super::{AuditTrail, TeamSessionLookup};
use crate::webhooks::origin;

/// The webhooks that a team has at once.
const MAX_WEBHOOKS: usize = 50;
/// The deliveries on one page.
const PAGE_SIZE: u16 = 50;

/// Implements [`TeamWebhookService`].
pub struct TeamWebhooks {
    /// The same use cases as operators have, for any team.
    pub webhooks: Arc<dyn WebhookService>,
    pub store: Arc<dyn WebhookStore>,
    pub lookup: TeamSessionLookup,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
    /// Wakes the dispatcher when deliveries became due.
    pub deliveries: Arc<Notify>,
}

#[async_trait]
impl TeamWebhookService for TeamWebhooks {
    async fn webhooks(&self, user: &SignedInUser) -> Result<Vec<StoredWebhook>, PortalError> {
        user.require(Permission::View)?;
        Ok(self.webhooks.list(user.team).await?)
    }

    async fn webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError> {
        self.team_webhook(user, Permission::View, id).await
    }

    async fn make_webhook(
        &self,
        user: &SignedInUser,
        new: NewWebhook,
    ) -> Result<StoredWebhook, PortalError> {
        self.require_to_change(user)?;
        if self.webhooks.list(user.team).await?.len() >= MAX_WEBHOOKS {
            return Err(PortalError::Invalid(format!(
                "a team can have up to {MAX_WEBHOOKS} endpoints"
            )));
        }
        let new = NewWebhook { team: user.team, ..new };
        // The log has the webhooks that were created, not those that were refused.
        self.webhooks.check(&new).await?;
        self.audit.record(user, "webhook.make", &origin(&new.url)).await?;
        Ok(self.webhooks.create(new).await?)
    }

    async fn change_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<(), PortalError> {
        self.require_to_change(user)?;
        self.team_webhook(user, Permission::Edit, id).await?;
        self.webhooks.check_change(id, &change).await?;
        let subject = format!("{id} to {}", origin(&change.url));
        self.audit.record(user, "webhook.change", &subject).await?;
        Ok(self.webhooks.change(id, change).await?)
    }

    async fn switch_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        active: bool,
    ) -> Result<(), PortalError> {
        self.team_webhook(user, Permission::Edit, id).await?;
        let action = if active { "webhook.switch-on" } else { "webhook.switch-off" };
        self.audit.record(user, action, &id.to_string()).await?;
        self.webhooks.set_active(id, active).await?;
        self.deliveries.notify_one();
        Ok(())
    }

    async fn rotate_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, PortalError> {
        self.require_to_change(user)?;
        self.team_webhook(user, Permission::Edit, id).await?;
        self.audit.record(user, "webhook.rotate-secret", &id.to_string()).await?;
        Ok(self.webhooks.rotate_secret(id, overlap).await?)
    }

    async fn test_webhook(
        &self,
        user: &SignedInUser,
        id: WebhookId,
    ) -> Result<DeliveryId, PortalError> {
        self.team_webhook(user, Permission::Edit, id).await?;
        self.audit.record(user, "webhook.test", &id.to_string()).await?;
        let delivery = self.webhooks.test(id).await?;
        self.deliveries.notify_one();
        Ok(delivery)
    }

    async fn webhook_deliveries(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        state: Option<DeliveryState>,
    ) -> Result<Vec<StoredDelivery>, PortalError> {
        self.team_webhook(user, Permission::View, id).await?;
        let filter = DeliveryFilter { of: DeliveryScope::Webhook(id), state, limit: PAGE_SIZE };
        Ok(self.webhooks.deliveries(filter).await?)
    }

    async fn session_deliveries(
        &self,
        user: &SignedInUser,
        id: SessionId,
    ) -> Result<Vec<StoredDelivery>, PortalError> {
        user.require(Permission::View)?;
        self.lookup.find(user, id).await?;
        let of = DeliveryScope::Session(id);
        let filter = DeliveryFilter { of, state: None, limit: PAGE_SIZE };
        Ok(self.webhooks.deliveries(filter).await?)
    }

    async fn webhook_delivery(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError> {
        self.team_delivery(user, Permission::View, id).await
    }

    async fn delivery_payload(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<String, PortalError> {
        self.team_delivery(user, Permission::View, id).await?;
        Ok(self.webhooks.redacted_payload(id).await?)
    }

    async fn send_delivery_again(
        &self,
        user: &SignedInUser,
        id: DeliveryId,
    ) -> Result<(), PortalError> {
        self.team_delivery(user, Permission::Edit, id).await?;
        self.audit.record(user, "delivery.send-again", &id.to_string()).await?;
        self.webhooks.send_again(id).await?;
        self.deliveries.notify_one();
        Ok(())
    }

    async fn send_all_again(
        &self,
        user: &SignedInUser,
        id: WebhookId,
        range: TimeRange,
    ) -> Result<usize, PortalError> {
        self.team_webhook(user, Permission::Edit, id).await?;
        let subject = format!("{id} from {} to {}", range.from, range.to);
        self.audit.record(user, "webhook.send-again", &subject).await?;
        let sent = self.webhooks.send_exhausted_again(id, range).await?;
        self.deliveries.notify_one();
        Ok(sent)
    }
}

impl TeamWebhooks {
    /// Checks that the user may change what deliveries are sent to, and has authenticated recently.
    fn require_to_change(&self, user: &SignedInUser) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        user.require_reauthentication(SensitiveAction::Team, self.clock.now())
    }

    /// Returns a webhook of the user's team, for a user who has this permission.
    async fn team_webhook(
        &self,
        user: &SignedInUser,
        permission: Permission,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError> {
        user.require(permission)?;
        let stored = self.store.webhook(id).await?;
        let stored = stored.filter(|stored| stored.webhook.team == user.team);
        stored.ok_or(PortalError::NotFound("endpoint"))
    }

    /// Returns a delivery to a webhook of the user's team, for a user who has this permission.
    async fn team_delivery(
        &self,
        user: &SignedInUser,
        permission: Permission,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError> {
        user.require(permission)?;
        let delivery = self.webhooks.delivery(id).await?;
        match self.team_webhook(user, permission, delivery.0.webhook).await {
            // Another team's delivery is as if it were not there.
            Err(PortalError::NotFound(_)) => Err(WebhookError::NotFound("delivery").into()),
            Err(error) => Err(error),
            Ok(_) => Ok(delivery),
        }
    }
}
