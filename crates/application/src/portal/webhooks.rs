//! A team's webhooks, as the portal shows and changes them.

use std::time::Duration;

use async_trait::async_trait;
use domain::{
    account::Permission,
    id::{DeliveryId, SessionId, WebhookId},
    reauthentication::SensitiveAction,
};
use ports::{
    delivery_log::{
        DeliveryFilter, DeliveryScope, DeliveryState, DeliveryWithAttempts, StoredDelivery,
        TimeRange,
    },
    driving::{
        NewWebhook, PortalError, Rotated, SignedInUser, TeamWebhookService, WebhookError,
        WebhookService as _,
    },
    webhook_store::{StoredWebhook, WebhookChange},
};

use super::People;
use crate::webhooks::origin;

/// Webhooks that a team has at once.
const MAX_WEBHOOKS: usize = 50;
/// Deliveries on one page.
const PAGE_SIZE: u16 = 50;

#[async_trait]
impl TeamWebhookService for People {
    async fn webhooks(&self, visitor: &SignedInUser) -> Result<Vec<StoredWebhook>, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.webhooks.list(visitor.team).await?)
    }

    async fn webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError> {
        self.team_webhook(visitor, Permission::Look, id).await
    }

    async fn make_webhook(
        &self,
        visitor: &SignedInUser,
        order: NewWebhook,
    ) -> Result<StoredWebhook, PortalError> {
        self.confirmed(visitor, SensitiveAction::Team)?;
        visitor.require(Permission::Work)?;
        if self.webhooks.list(visitor.team).await?.len() >= MAX_WEBHOOKS {
            return Err(PortalError::Invalid(format!("a team has up to {MAX_WEBHOOKS} webhooks")));
        }
        self.note(visitor, "webhook.make", &origin(&order.url)).await?;
        Ok(self.webhooks.create(NewWebhook { team: visitor.team, ..order }).await?)
    }

    async fn change_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<(), PortalError> {
        self.confirmed(visitor, SensitiveAction::Team)?;
        self.team_webhook(visitor, Permission::Work, id).await?;
        let subject = format!("{id} to {}", origin(&change.url));
        self.note(visitor, "webhook.change", &subject).await?;
        Ok(self.webhooks.change(id, change).await?)
    }

    async fn switch_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        active: bool,
    ) -> Result<(), PortalError> {
        self.team_webhook(visitor, Permission::Work, id).await?;
        let action = if active { "webhook.switch-on" } else { "webhook.switch-off" };
        self.note(visitor, action, &id.to_string()).await?;
        self.webhooks.set_active(id, active).await?;
        self.core.deliveries.notify_one();
        Ok(())
    }

    async fn rotate_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, PortalError> {
        self.confirmed(visitor, SensitiveAction::Team)?;
        self.team_webhook(visitor, Permission::Work, id).await?;
        self.note(visitor, "webhook.rotate-secret", &id.to_string()).await?;
        Ok(self.webhooks.rotate_secret(id, overlap).await?)
    }

    async fn test_webhook(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
    ) -> Result<DeliveryId, PortalError> {
        self.team_webhook(visitor, Permission::Work, id).await?;
        self.note(visitor, "webhook.test", &id.to_string()).await?;
        let owed = self.webhooks.test(id).await?;
        self.core.deliveries.notify_one();
        Ok(owed)
    }

    async fn webhook_deliveries(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        state: Option<DeliveryState>,
    ) -> Result<Vec<StoredDelivery>, PortalError> {
        self.team_webhook(visitor, Permission::Look, id).await?;
        let find = DeliveryFilter { of: DeliveryScope::Webhook(id), state, limit: PAGE_SIZE };
        Ok(self.webhooks.deliveries(find).await?)
    }

    async fn session_deliveries(
        &self,
        visitor: &SignedInUser,
        id: SessionId,
    ) -> Result<Vec<StoredDelivery>, PortalError> {
        visitor.require(Permission::Look)?;
        self.of_team(visitor, id).await?;
        let find = DeliveryFilter { of: DeliveryScope::Session(id), state: None, limit: PAGE_SIZE };
        Ok(self.webhooks.deliveries(find).await?)
    }

    async fn webhook_delivery(
        &self,
        visitor: &SignedInUser,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError> {
        self.team_delivery(visitor, Permission::Look, id).await
    }

    async fn send_delivery_again(
        &self,
        visitor: &SignedInUser,
        id: DeliveryId,
    ) -> Result<(), PortalError> {
        self.team_delivery(visitor, Permission::Work, id).await?;
        self.note(visitor, "delivery.send-again", &id.to_string()).await?;
        self.webhooks.send_again(id).await?;
        self.core.deliveries.notify_one();
        Ok(())
    }

    async fn send_all_again(
        &self,
        visitor: &SignedInUser,
        id: WebhookId,
        span: TimeRange,
    ) -> Result<usize, PortalError> {
        self.team_webhook(visitor, Permission::Work, id).await?;
        let subject = format!("{id} from {} to {}", span.from, span.to);
        self.note(visitor, "webhook.send-again", &subject).await?;
        let sent = self.webhooks.send_exhausted_again(id, span).await?;
        self.core.deliveries.notify_one();
        Ok(sent)
    }
}

impl People {
    async fn team_webhook(
        &self,
        visitor: &SignedInUser,
        right: Permission,
        id: WebhookId,
    ) -> Result<StoredWebhook, PortalError> {
        visitor.require(right)?;
        let kept = self.webhooks.store.webhook(id).await?;
        let kept = kept.filter(|kept| kept.webhook.team == visitor.team);
        kept.ok_or(PortalError::NotFound("webhook"))
    }

    async fn team_delivery(
        &self,
        visitor: &SignedInUser,
        right: Permission,
        id: DeliveryId,
    ) -> Result<DeliveryWithAttempts, PortalError> {
        visitor.require(right)?;
        let whole = self.webhooks.delivery(id).await?;
        match self.team_webhook(visitor, right, whole.0.webhook).await {
            Err(PortalError::NotFound(_)) => Err(WebhookError::NotFound("delivery").into()),
            Err(error) => Err(error),
            Ok(_) => Ok(whole),
        }
    }
}
