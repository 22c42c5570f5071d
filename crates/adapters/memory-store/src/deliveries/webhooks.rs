//! Webhooks and their configuration.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, TeamId, WebhookId},
    secret::Secret,
    webhook::{EndpointHealth, RetiringSecret, Webhook},
};
use ports::{
    Reencrypted, StoreError,
    webhook_store::{HeaderChange, StoredWebhook, WebhookChange, WebhookStore},
};

use super::fresh;
use crate::{MemoryStore, State, resealed};

impl State {
    /// Refuses references to keys of which one does not exist.
    fn require_keys(&self, keys: &[ApiKeyId], action: &'static str) -> Result<(), StoreError> {
        let all = keys.iter().all(|key| self.teams.has_key(*key));
        if all { Ok(()) } else { Err(StoreError::new(action, "there is no such key")) }
    }
}

/// Applies a change of its configuration to a webhook.
fn apply(change: &WebhookChange, kept: &mut StoredWebhook) {
    if kept.webhook.url != change.url {
        // Resets the health, which is that of the earlier endpoint.
        kept.health = EndpointHealth::default();
    }
    match &change.header {
        HeaderChange::Keep => (),
        HeaderChange::Drop => kept.webhook.header = None,
        HeaderChange::Set(header) => kept.webhook.header = Some(header.clone()),
    }
    change.url.clone_into(&mut kept.webhook.url);
    change.keys.clone_into(&mut kept.keys);
    kept.webhook.timeout = change.timeout;
    kept.webhook.retries = change.retries;
}

#[async_trait]
impl WebhookStore for MemoryStore {
    async fn add_webhook(
        &self,
        webhook: &Webhook,
        keys: &[ApiKeyId],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const ACTION: &str = "add a webhook";
        let mut state = self.state();
        state.teams.require(webhook.team, ACTION)?;
        state.require_keys(keys, ACTION)?;
        let webhooks = &mut state.deliveries.webhooks;
        if webhooks.contains_key(&webhook.id) {
            return Err(StoreError::new(ACTION, "the webhook exists already"));
        }
        webhooks.insert(webhook.id, fresh(webhook, keys, now));
        Ok(())
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<StoredWebhook>, StoreError> {
        Ok(self.state().deliveries.webhooks.get(&id).cloned())
    }

    async fn webhooks(&self, team: TeamId) -> Result<Vec<StoredWebhook>, StoreError> {
        let deliveries = &self.state().deliveries;
        let theirs = deliveries.webhooks.values().filter(|kept| kept.webhook.team == team);
        let mut webhooks: Vec<_> = theirs.cloned().collect();
        webhooks.sort_by_key(|kept| (kept.created_at, kept.webhook.id));
        Ok(webhooks)
    }

    async fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let keys = state.require_keys(&change.keys, "change a webhook");
        let Some(kept) = state.deliveries.webhooks.get_mut(&id) else { return Ok(false) };
        keys.map(|()| apply(change, kept)).map(|()| true)
    }

    async fn set_active(&self, id: WebhookId, active: bool) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(kept) = state.deliveries.webhooks.get_mut(&id) else { return Ok(false) };
        kept.webhook.active = active;
        Ok(true)
    }

    async fn rotate_secret(
        &self,
        id: WebhookId,
        fresh: &Secret,
        retiring: &RetiringSecret,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let Some(kept) = state.deliveries.webhooks.get_mut(&id) else { return Ok(false) };
        kept.webhook.secret = fresh.clone();
        kept.webhook.retiring = Some(retiring.clone());
        Ok(true)
    }

    async fn reseal(
        &self,
        after: Option<WebhookId>,
        limit: u16,
    ) -> Result<Reencrypted<WebhookId>, StoreError> {
        let deliveries = &self.state().deliveries;
        Ok(resealed(deliveries.webhooks.keys().copied(), after, limit))
    }
}
