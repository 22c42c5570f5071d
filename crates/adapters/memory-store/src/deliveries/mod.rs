//! Webhooks, and the deliveries to them.

mod health;
mod log;
mod queue;
mod webhooks;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::{
    id::{ApiKeyId, DeliveryId, SessionId, TeamId, WebhookId},
    webhook::{EndpointHealth, Webhook},
};
use ports::{
    delivery_log::{DeliveryState, StoredAttempt, StoredDelivery},
    webhook_store::StoredWebhook,
};

use crate::ids::IdSequence;

/// The webhooks of all teams, and all deliveries.
#[derive(Default)]
pub(crate) struct Deliveries {
    webhooks: BTreeMap<WebhookId, StoredWebhook>,
    records: BTreeMap<DeliveryId, DeliveryRecord>,
}

struct DeliveryRecord {
    webhook: WebhookId,
    session: SessionId,
    body: String,
    test: bool,
    created_at: DateTime<Utc>,
    exhausted_at: Option<DateTime<Utc>>,
    /// When it is due; `None` once it is delivered or exhausted.
    pending: Option<PendingDelivery>,
    /// In the order of their numbers.
    attempts: Vec<StoredAttempt>,
    /// The number of claims so far; a claim is held while this is its own number.
    claim: i32,
}

/// A delivery in the queue.
struct PendingDelivery {
    /// When it was queued, or resent.
    since: DateTime<Utc>,
    due: DateTime<Utc>,
    is_test: bool,
    /// Attempts since then.
    tries: u32,
    leased_until: Option<DateTime<Utc>>,
}

/// A notice: that a session has ended, or a test.
pub(crate) struct WebhookBody<'a> {
    pub(crate) session: SessionId,
    pub(crate) body: &'a str,
    pub(crate) at: DateTime<Utc>,
}

impl Deliveries {
    /// Queues a message for each active webhook of the team that takes sessions of this key.
    pub(crate) fn enqueue_for_team(
        &mut self,
        ids: &mut IdSequence,
        (team, key): (TeamId, ApiKeyId),
        message: &WebhookBody<'_>,
    ) {
        let active = self.webhooks.values().filter(|kept| kept.webhook.active);
        let theirs = active.filter(|kept| kept.webhook.team == team);
        let chosen = theirs.filter(|kept| kept.keys.is_empty() || kept.keys.contains(&key));
        let chosen: Vec<_> = chosen.map(|kept| kept.webhook.id).collect();
        for webhook in chosen {
            self.enqueue(ids, webhook, message, false);
        }
    }

    /// Queues a message for a webhook, due at once; a test has one attempt.
    fn enqueue(
        &mut self,
        ids: &mut IdSequence,
        webhook: WebhookId,
        message: &WebhookBody<'_>,
        test: bool,
    ) -> DeliveryId {
        let WebhookBody { session, body, at } = *message;
        let id = DeliveryId::from_uuid(ids.next_at(at));
        let record = DeliveryRecord {
            webhook,
            session,
            body: body.to_owned(),
            test,
            created_at: at,
            exhausted_at: None,
            pending: Some(PendingDelivery::at(at, test)),
            attempts: vec![],
            claim: 0,
        };
        self.records.insert(id, record);
        id
    }

    /// Replaces the bodies of a session's deliveries with `body` and erases the answers to them,
    /// since a partner's server may have repeated the data it was sent.
    pub(crate) fn erase(&mut self, session: SessionId, body: &str) {
        let its = self.records.values_mut().filter(|record| record.session == session);
        for record in its {
            body.clone_into(&mut record.body);
            record.attempts.iter_mut().for_each(|attempt| attempt.answer.clear());
        }
    }
}

impl PendingDelivery {
    const fn at(at: DateTime<Utc>, is_test: bool) -> Self {
        Self { since: at, due: at, is_test, tries: 0, leased_until: None }
    }

    fn is_free(&self, now: DateTime<Utc>) -> bool {
        self.leased_until.is_none_or(|until| until <= now)
    }
}

impl DeliveryRecord {
    const fn state(&self) -> DeliveryState {
        match (&self.pending, self.exhausted_at) {
            (Some(_), _) => DeliveryState::Pending,
            (None, Some(_)) => DeliveryState::Exhausted,
            (None, None) => DeliveryState::Delivered,
        }
    }

    fn kept(&self, id: DeliveryId) -> StoredDelivery {
        StoredDelivery {
            id,
            webhook: self.webhook,
            session: self.session,
            test: self.test,
            state: self.state(),
            created_at: self.created_at,
            due: self.pending.as_ref().map(|pending| pending.due),
        }
    }
}

/// Returns a new webhook as it is stored.
fn fresh(webhook: &Webhook, keys: &[ApiKeyId], created_at: DateTime<Utc>) -> StoredWebhook {
    let (webhook, keys) = (webhook.clone(), keys.to_vec());
    StoredWebhook { webhook, keys, health: EndpointHealth::default(), created_at }
}
