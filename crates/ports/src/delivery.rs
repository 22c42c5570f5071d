//! Deliveries that partners are owed.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{DeliveryId, SessionId},
    webhook::Webhook,
};

use crate::{StoreError, outbox::Verdict, webhook_sender::Answer};

/// The queue of deliveries. Filled only by the session store, when a session ends.
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Leases up to `limit` due deliveries. The lease MUST outlast the longest timeout that a
    /// webhook can have, or a slow receiver is called twice.
    async fn claim_deliveries(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// Writes an attempt down and ends the claim. Answers `false`, and changes nothing, when the
    /// claim was lost to a later one in the meantime.
    async fn settle_delivery(
        &self,
        delivery: &Delivery,
        attempt: &Attempt,
        verdict: Verdict,
    ) -> Result<bool, StoreError>;
}

/// One webhook's notice of one session, claimed.
#[derive(Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub session: SessionId,
    pub webhook: Webhook,
    /// The exact bytes of the body; the same in each attempt.
    pub body: String,
    /// Counts from 1; also the fence against a lost claim.
    pub attempt: i32,
}

/// What came of one POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: DateTime<Utc>,
    pub took: Duration,
    pub answer: Answer,
}
