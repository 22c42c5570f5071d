//! The outbox: saved jobs that workers carry out.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    id::{InstanceId, SessionId},
    session::Job,
};

use crate::StoreError;

/// The queue of jobs. Only the session store fills it, in its own writes.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Leases up to `limit` due jobs that this instance or any instance can carry out. No other
    /// caller gets them until `lease` has passed. A job whose lease expires is leased again. A job
    /// that this version does not know is leased too, but not returned.
    async fn claim(
        &self,
        node: InstanceId,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<OutboxClaim>, StoreError>;

    /// Ends a claim. Returns `false`, and changes nothing, if the claim was lost to a later one in
    /// the meantime.
    async fn complete(
        &self,
        claim: &OutboxClaim,
        outcome: ClaimOutcome,
    ) -> Result<bool, StoreError>;

    /// Deletes jobs that only another instance could carry out and that were due before
    /// `before`: that instance no longer runs, and neither do its browsers. Returns their number.
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
    pub job: Job,
    /// The number of the attempt, from 1. It is also the fence against a lost claim.
    pub attempt: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOutcome {
    Done,
    RetryAt(DateTime<Utc>),
    /// No further attempt is made; the entry is kept for the operator.
    Buried,
}
