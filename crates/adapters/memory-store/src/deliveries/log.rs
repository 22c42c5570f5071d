//! The log of deliveries, and resending.

use std::cmp::Reverse;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::id::{DeliveryId, SessionId, WebhookId};
use ports::{
    StoreError,
    delivery_log::{
        DeliveryFilter, DeliveryLog, DeliveryScope, DeliveryWithAttempts, StoredDelivery, TimeRange,
    },
};

use super::{Deliveries, DeliveryRecord, PendingDelivery, WebhookBody};
use crate::{MemoryStore, State, schedule::earliest};

impl Deliveries {
    /// Returns up to `limit` of the deliveries that match, the newest first.
    fn newest(&self, limit: u16, matches: impl Fn(&DeliveryRecord) -> bool) -> Vec<StoredDelivery> {
        let found = self.records.iter().filter(|(_, record)| matches(record));
        let mut found: Vec<_> = found.map(|(id, record)| record.kept(*id)).collect();
        found.sort_by_key(|kept| Reverse((kept.created_at, kept.id)));
        found.truncate(limit.into());
        found
    }

    /// Queues a delivery again. A lease on it remains, so that two processes do not send it at the
    /// same time.
    fn enqueue_again(&mut self, id: DeliveryId, now: DateTime<Utc>) -> bool {
        let Some(record) = self.records.get_mut(&id) else { return false };
        let fresh = PendingDelivery::at(now, false);
        record.exhausted_at = None;
        record.pending = Some(match record.pending.take() {
            Some(PendingDelivery { is_test, leased_until, .. }) => {
                PendingDelivery { is_test, leased_until, ..fresh }
            }
            None => fresh,
        });
        true
    }

    fn forget(&mut self, before: DateTime<Utc>, limit: u16) -> usize {
        let settled = self.records.iter().filter(|(_, record)| record.pending.is_none());
        let old = settled.filter(|(_, record)| record.created_at < before);
        let old = earliest(old.map(|(id, record)| (record.created_at, *id)), limit);
        for id in &old {
            self.records.remove(id);
        }
        old.len()
    }
}

#[async_trait]
impl DeliveryLog for MemoryStore {
    async fn find_deliveries(
        &self,
        find: &DeliveryFilter,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        Ok(self.state().deliveries.newest(find.limit, |record| {
            let about = match find.of {
                DeliveryScope::Webhook(id) => record.webhook == id,
                DeliveryScope::Session(id) => record.session == id,
            };
            about && find.state.is_none_or(|state| record.state() == state)
        }))
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<DeliveryWithAttempts>, StoreError> {
        let deliveries = &self.state().deliveries;
        let record = deliveries.records.get(&id);
        Ok(record.map(|record| (record.kept(id), record.attempts.clone())))
    }

    async fn delivery_body(&self, id: DeliveryId) -> Result<Option<String>, StoreError> {
        Ok(self.state().deliveries.records.get(&id).map(|record| record.body.clone()))
    }

    async fn send_again(&self, id: DeliveryId, now: DateTime<Utc>) -> Result<bool, StoreError> {
        Ok(self.state().deliveries.enqueue_again(id, now))
    }

    async fn send_exhausted_again(
        &self,
        webhook: WebhookId,
        span: TimeRange,
        now: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        let deliveries = &mut self.state().deliveries;
        let exhausted = deliveries.newest(limit, |record| {
            record.webhook == webhook
                && record.exhausted_at.is_some()
                && (span.from..span.to).contains(&record.created_at)
        });
        Ok(exhausted.iter().filter(|kept| deliveries.enqueue_again(kept.id, now)).count())
    }

    async fn enqueue_test(
        &self,
        webhook: WebhookId,
        session: SessionId,
        body: &str,
        now: DateTime<Utc>,
    ) -> Result<DeliveryId, StoreError> {
        let mut state = self.state();
        let State { ids, deliveries, .. } = &mut *state;
        if !deliveries.webhooks.contains_key(&webhook) {
            return Err(StoreError::new("queue a test delivery", "there is no such webhook"));
        }
        Ok(deliveries.enqueue(ids, webhook, &WebhookBody { session, body, at: now }, true))
    }

    async fn delete_old_deliveries(
        &self,
        before: DateTime<Utc>,
        limit: u16,
    ) -> Result<usize, StoreError> {
        Ok(self.state().deliveries.forget(before, limit))
    }
}
