//! The queue of deliveries.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
    sync::Arc,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{DeliveryId, WebhookId},
    webhook::{DeliveryDecision, EndpointHealth},
};
use ports::{
    StoreError,
    delivery::{
        AttemptResult, CLAIM_TTL, ClaimRef, ClaimRequest, ClaimedDeliveries, Delivery,
        DeliveryAttempt, DeliveryQueue, EndpointCapacity, HealthUpdate,
    },
    delivery_log::StoredAttempt,
    webhook_sender::WebhookResponse,
    webhook_store::StoredWebhook,
};

use super::{Deliveries, DeliveryRecord};
use crate::{MemoryStore, schedule::earliest};

impl Deliveries {
    fn claim(&mut self, ask: &ClaimRequest) -> ClaimedDeliveries {
        let Self { webhooks, records } = self;
        let rooms: BTreeMap<_, _> =
            ask.capacities.iter().map(|room| (room.webhook, room)).collect();
        let mut claimed = ClaimedDeliveries { deliveries: vec![], next: None };
        let from = ask.after.map_or(Unbounded, Excluded);
        for (id, kept) in webhooks.range((from, Unbounded)) {
            let free = ask.limit.saturating_sub(count(&claimed.deliveries));
            if free == 0 {
                break;
            }
            if !kept.webhook.active || !kept.health.permits_delivery(ask.now) {
                continue;
            }
            let limit = share(ask, rooms.get(id).copied(), &kept.health).min(free);
            let lease = ask.now + CLAIM_TTL;
            let given = take(records, kept, (ask.now, lease), limit);
            if !given.is_empty() && count(&given) == free {
                claimed.next = Some(*id);
            }
            claimed.deliveries.extend(given);
        }
        claimed
    }

    /// Extends a claim; does nothing if it was lost.
    fn renew(&mut self, claim: ClaimRef, until: DateTime<Utc>) {
        let record = self.records.get_mut(&claim.delivery);
        let record = record.filter(|record| record.claim == claim.claim);
        let pending = record.and_then(|record| record.pending.as_mut());
        if let Some(pending) = pending.filter(|pending| pending.leased_until.is_some()) {
            pending.leased_until = Some(until);
        }
    }

    /// Records an attempt and ends its claim. Returns `false` if the claim was lost.
    fn settle(&mut self, settled: &AttemptResult) -> bool {
        let record = self.records.get_mut(&settled.delivery);
        let Some(record) = record.filter(|record| record.claim == settled.claim) else {
            return false;
        };
        let Some(pending) = record.pending.as_mut().filter(|held| held.leased_until.is_some())
        else {
            return false;
        };
        match settled.decision {
            DeliveryDecision::RetryAt(due) => {
                pending.due = due;
                pending.leased_until = None;
                pending.tries = pending.tries.saturating_add(1);
            }
            DeliveryDecision::Delivered => record.pending = None,
            DeliveryDecision::Exhausted => {
                record.pending = None;
                record.exhausted_at = Some(settled.attempt.at);
            }
        }
        record.attempts.push(kept_attempt(&settled.attempt, record.attempts.len()));
        true
    }

    /// Exhausts up to `limit` deliveries that have been pending since before `before` and are not
    /// leased.
    fn give_up(&mut self, before: DateTime<Utc>, limit: u16) -> usize {
        let pending = self
            .records
            .iter()
            .filter_map(|(id, record)| record.pending.as_ref().map(|pending| (pending, *id)));
        let old = pending.filter(|(pending, _)| pending.since < before && pending.is_free(before));
        let old = earliest(old.map(|(pending, id)| (pending.since, id)), limit);
        for id in &old {
            if let Some(record) = self.records.get_mut(id) {
                record.pending = None;
                record.exhausted_at = Some(before);
            }
        }
        old.len()
    }
}

fn count(deliveries: &[Delivery]) -> u16 {
    u16::try_from(deliveries.len()).unwrap_or(u16::MAX)
}

/// Returns the maximum number of a webhook's deliveries that a claim can take.
fn share(ask: &ClaimRequest, room: Option<&EndpointCapacity>, health: &EndpointHealth) -> u16 {
    let most = room.map_or(ask.each, |room| room.most);
    if !health.is_half_open() {
        most
    } else if room.is_some_and(|room| room.busy) {
        0
    } else {
        most.min(1)
    }
}

/// Leases up to `limit` of a webhook's due deliveries until `lease`, the earliest due first.
fn take(
    records: &mut BTreeMap<DeliveryId, DeliveryRecord>,
    kept: &StoredWebhook,
    (now, lease): (DateTime<Utc>, DateTime<Utc>),
    limit: u16,
) -> Vec<Delivery> {
    let webhook: WebhookId = kept.webhook.id;
    let theirs = records.iter().filter(|(_, record)| record.webhook == webhook);
    let pending =
        theirs.filter_map(|(id, record)| record.pending.as_ref().map(|pending| (pending, *id)));
    let due = pending.filter(|(pending, _)| pending.due <= now && pending.is_free(now));
    let due = earliest(due.map(|(pending, id)| (pending.due, id)), limit);
    let (webhook, endpoint_failing) = (Arc::new(kept.webhook.clone()), kept.health.failures > 0);
    let leased = due.into_iter().filter_map(|id| {
        let record = records.get_mut(&id)?;
        let pending = record.pending.as_mut()?;
        pending.leased_until = Some(lease);
        record.claim = record.claim.saturating_add(1);
        Some(Delivery {
            id,
            session: record.session,
            webhook: webhook.clone(),
            endpoint_failing,
            body: record.body.clone(),
            attempts: pending.tries,
            is_test: pending.is_test,
            created_at: pending.since,
            due: pending.due,
            claim: record.claim,
        })
    });
    leased.collect()
}

/// Returns an attempt as the log shows it, after `before` earlier attempts.
fn kept_attempt(attempt: &DeliveryAttempt, before: usize) -> StoredAttempt {
    let (status, error, answer) = match &attempt.call.answer {
        WebhookResponse::Status { code, body, .. } => (Some(i32::from(*code)), None, body.clone()),
        WebhookResponse::Failed(cause) => (None, Some(cause.as_str().to_owned()), String::new()),
    };
    StoredAttempt {
        number: i32::try_from(before).unwrap_or(i32::MAX).saturating_add(1),
        at: attempt.at,
        took_ms: i32::try_from(attempt.took.as_millis()).unwrap_or(i32::MAX),
        status,
        error,
        answer,
        sent: attempt.call.sent.clone(),
    }
}

#[async_trait]
impl DeliveryQueue for MemoryStore {
    async fn claim_deliveries(&self, ask: &ClaimRequest) -> Result<ClaimedDeliveries, StoreError> {
        Ok(self.state().deliveries.claim(ask))
    }

    async fn renew_claims(
        &self,
        claims: &[ClaimRef],
        until: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let deliveries = &mut self.state().deliveries;
        for one in claims {
            deliveries.renew(*one, until);
        }
        Ok(())
    }

    async fn settle_deliveries(&self, settled: &[AttemptResult]) -> Result<Vec<bool>, StoreError> {
        let deliveries = &mut self.state().deliveries;
        Ok(settled.iter().map(|one| deliveries.settle(one)).collect())
    }

    async fn note_health(
        &self,
        tallies: &[HealthUpdate],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.state().deliveries.note_tallies(tallies, now);
        Ok(())
    }

    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError> {
        Ok(self.state().deliveries.give_up(before, limit))
    }
}
