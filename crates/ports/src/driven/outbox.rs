//! Effects that were saved and wait to be carried out.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{InstanceId, SessionId},
    session::Effect,
};

use crate::StoreError;

/// The queue of effects. Filled only by the session store, in its own writes.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Leases up to `limit` due effects that this node or any node can carry out, so that nobody
    /// else is handed them until `lease` has passed. A lease that runs out is handed out again.
    async fn claim(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError>;

    /// Ends a claim. Answers `false`, and changes nothing, when the claim was lost to a later one
    /// in the meantime.
    async fn complete(
        &self,
        claim: &OutboxClaim,
        verdict: ClaimOutcome,
    ) -> Result<bool, StoreError>;

    /// Drops effects that only another node could carry out and that were due before `before`:
    /// that node is gone, and its browsers with it. Answers how many.
    async fn delete_orphans(
        &self,
        node: InstanceId,
        before: DateTime<Utc>,
    ) -> Result<usize, StoreError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxClaim {
    pub entry: i64,
    pub session: SessionId,
    pub effect: Effect,
    /// Counts from 1; also the fence against a lost claim.
    pub attempt: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOutcome {
    Done,
    RetryAt(DateTime<Utc>),
    /// Given up on; kept for the operator.
    Buried,
}
