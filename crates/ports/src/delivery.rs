//! Deliveries that partners are owed.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{DeliveryId, SessionId, WebhookId},
    webhook::{Verdict, Webhook},
};

use crate::{StoreError, webhook_sender::Call};

/// Added to a webhook's own timeout, this is how long a claim lasts: a receiver that takes all of
/// its time is not called twice.
pub const CLAIM_MARGIN: TimeDelta = TimeDelta::seconds(15);

/// The queue of deliveries. Filled by the session store when a session ends, and by whoever sends
/// something again or tries a webhook out.
#[async_trait]
pub trait DeliveryQueue: Send + Sync {
    /// Leases due deliveries, webhook after webhook, so that none is passed over however much
    /// another one is owed. Nothing is leased of webhooks that are inactive or in a pause; of one
    /// that is being tried out, one delivery, where the claimer has none of it. A claim lasts for the webhook's timeout and
    /// [`CLAIM_MARGIN`], then it is handed out again.
    async fn claim_deliveries(&self, ask: &Ask) -> Result<Claimed, StoreError>;

    /// Writes attempts down and ends their claims. Answers for each whether it was still held;
    /// nothing is written of those that were not.
    async fn settle_deliveries(&self, settled: &[Settled]) -> Result<Vec<bool>, StoreError>;

    /// Keeps count of how receivers answered. A success ends what failures began.
    async fn note_health(&self, tallies: &[Tally], now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Gives up on what has been owed since before `before` and is not being sent; up to `limit`.
    /// Answers how many.
    async fn give_up(&self, before: DateTime<Utc>, limit: u16) -> Result<usize, StoreError>;
}

/// What a claimer has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub now: DateTime<Utc>,
    /// Goes on after this webhook, in the order of identifiers; none: from the first.
    pub after: Option<WebhookId>,
    /// The most deliveries in all.
    pub limit: u16,
    /// The most of a webhook that is not named in `room`.
    pub each: u16,
    pub room: Vec<Room>,
}

/// What a claimer has room for of one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub webhook: WebhookId,
    pub most: u16,
    /// Whether it has some of it in hand: who is tried out is given no second one.
    pub busy: bool,
}

/// What was claimed, and where to go on; none: from the first again.
pub struct Claimed {
    pub deliveries: Vec<Delivery>,
    pub next: Option<WebhookId>,
}

/// One webhook's notice of one session, claimed.
#[derive(Clone)]
pub struct Delivery {
    pub id: DeliveryId,
    pub session: SessionId,
    pub webhook: Arc<Webhook>,
    /// Whether the receiver failed when it was last tried.
    pub ailing: bool,
    /// The exact bytes of the body; the same in each attempt.
    pub body: String,
    /// Attempts that were made since it was owed, or sent again.
    pub tries: u32,
    /// Whether it has one attempt, as a test.
    pub single: bool,
    /// When it began to be owed, or was sent again.
    pub since: DateTime<Utc>,
    /// When it became due.
    pub due: DateTime<Utc>,
    /// The fence against a lost claim.
    pub claim: i32,
}

/// What came of one POST, and what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub delivery: DeliveryId,
    pub webhook: WebhookId,
    pub claim: i32,
    pub attempt: Attempt,
    pub verdict: Verdict,
}

/// What came of one POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: DateTime<Utc>,
    pub took: Duration,
    pub call: Call,
}

/// How a webhook's receiver answered a few times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub webhook: WebhookId,
    /// Failures since the last success, or of all where none succeeded.
    pub failures: u32,
    /// Whether one of them was a success.
    pub success: bool,
}
