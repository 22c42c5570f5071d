//! A team's webhooks, as the portal shows and changes them.

use std::time::Duration;

use async_trait::async_trait;
use domain::{
    account::Right,
    confirmation::Sensitive,
    id::{DeliveryId, SessionId, WebhookId},
};
use ports::{
    delivery_log::{DeliveryState, Find, KeptDelivery, Of, Span, WholeDelivery},
    driving::{
        NewWebhook, PortalError, Rotated, TeamWebhookService, Visitor, WebhookError,
        WebhookService as _,
    },
    webhook_store::{KeptWebhook, WebhookChange},
};

use super::People;
use crate::webhooks::origin;

/// Webhooks that a team has at once.
const MOST_WEBHOOKS: usize = 50;
/// Deliveries on one page.
const ON_A_PAGE: u16 = 50;

#[async_trait]
impl TeamWebhookService for People {
    async fn webhooks(&self, visitor: &Visitor) -> Result<Vec<KeptWebhook>, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.webhooks.list(visitor.team).await?)
    }

    async fn webhook(&self, visitor: &Visitor, id: WebhookId) -> Result<KeptWebhook, PortalError> {
        self.team_webhook(visitor, Right::Look, id).await
    }

    async fn make_webhook(
        &self,
        visitor: &Visitor,
        order: NewWebhook,
    ) -> Result<KeptWebhook, PortalError> {
        self.confirmed(visitor, Sensitive::Team)?;
        visitor.must(Right::Work)?;
        if self.webhooks.list(visitor.team).await?.len() >= MOST_WEBHOOKS {
            return Err(PortalError::Invalid(format!("a team has up to {MOST_WEBHOOKS} webhooks")));
        }
        self.note(visitor, "webhook.make", &origin(&order.url)).await?;
        Ok(self.webhooks.create(NewWebhook { team: visitor.team, ..order }).await?)
    }

    async fn change_webhook(
        &self,
        visitor: &Visitor,
        id: WebhookId,
        change: WebhookChange,
    ) -> Result<(), PortalError> {
        self.confirmed(visitor, Sensitive::Team)?;
        self.team_webhook(visitor, Right::Work, id).await?;
        let subject = format!("{id} to {}", origin(&change.url));
        self.note(visitor, "webhook.change", &subject).await?;
        Ok(self.webhooks.change(id, change).await?)
    }

    async fn switch_webhook(
        &self,
        visitor: &Visitor,
        id: WebhookId,
        active: bool,
    ) -> Result<(), PortalError> {
        self.team_webhook(visitor, Right::Work, id).await?;
        let action = if active { "webhook.switch-on" } else { "webhook.switch-off" };
        self.note(visitor, action, &id.to_string()).await?;
        self.webhooks.set_active(id, active).await?;
        self.core.deliveries.notify_one();
        Ok(())
    }

    async fn rotate_webhook(
        &self,
        visitor: &Visitor,
        id: WebhookId,
        overlap: Duration,
    ) -> Result<Rotated, PortalError> {
        self.confirmed(visitor, Sensitive::Team)?;
        self.team_webhook(visitor, Right::Work, id).await?;
        self.note(visitor, "webhook.rotate-secret", &id.to_string()).await?;
        Ok(self.webhooks.rotate_secret(id, overlap).await?)
    }

    async fn test_webhook(
        &self,
        visitor: &Visitor,
        id: WebhookId,
    ) -> Result<DeliveryId, PortalError> {
        self.team_webhook(visitor, Right::Work, id).await?;
        self.note(visitor, "webhook.test", &id.to_string()).await?;
        let owed = self.webhooks.test(id).await?;
        self.core.deliveries.notify_one();
        Ok(owed)
    }

    async fn webhook_deliveries(
        &self,
        visitor: &Visitor,
        id: WebhookId,
        state: Option<DeliveryState>,
    ) -> Result<Vec<KeptDelivery>, PortalError> {
        self.team_webhook(visitor, Right::Look, id).await?;
        let find = Find { of: Of::Webhook(id), state, limit: ON_A_PAGE };
        Ok(self.webhooks.deliveries(find).await?)
    }

    async fn session_deliveries(
        &self,
        visitor: &Visitor,
        id: SessionId,
    ) -> Result<Vec<KeptDelivery>, PortalError> {
        visitor.must(Right::Look)?;
        self.of_team(visitor, id).await?;
        let find = Find { of: Of::Session(id), state: None, limit: ON_A_PAGE };
        Ok(self.webhooks.deliveries(find).await?)
    }

    async fn webhook_delivery(
        &self,
        visitor: &Visitor,
        id: DeliveryId,
    ) -> Result<WholeDelivery, PortalError> {
        self.team_delivery(visitor, Right::Look, id).await
    }

    async fn send_delivery_again(
        &self,
        visitor: &Visitor,
        id: DeliveryId,
    ) -> Result<(), PortalError> {
        self.team_delivery(visitor, Right::Work, id).await?;
        self.note(visitor, "delivery.send-again", &id.to_string()).await?;
        self.webhooks.send_again(id).await?;
        self.core.deliveries.notify_one();
        Ok(())
    }

    async fn send_all_again(
        &self,
        visitor: &Visitor,
        id: WebhookId,
        span: Span,
    ) -> Result<usize, PortalError> {
        self.team_webhook(visitor, Right::Work, id).await?;
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
        visitor: &Visitor,
        right: Right,
        id: WebhookId,
    ) -> Result<KeptWebhook, PortalError> {
        visitor.must(right)?;
        let kept = self.webhooks.store.webhook(id).await?;
        let kept = kept.filter(|kept| kept.webhook.team == visitor.team);
        kept.ok_or(PortalError::NotFound("webhook"))
    }

    async fn team_delivery(
        &self,
        visitor: &Visitor,
        right: Right,
        id: DeliveryId,
    ) -> Result<WholeDelivery, PortalError> {
        visitor.must(right)?;
        let whole = self.webhooks.delivery(id).await?;
        match self.team_webhook(visitor, right, whole.0.webhook).await {
            Err(PortalError::NotFound(_)) => Err(WebhookError::NotFound("delivery").into()),
            Err(error) => Err(error),
            Ok(_) => Ok(whole),
        }
    }
}
