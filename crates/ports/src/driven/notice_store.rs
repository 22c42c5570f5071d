//! The queue of notices to members about their account.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::Email,
    id::{NoticeId, UserId},
    notice::AccountEvent,
};

use crate::{StoreError, account_store::RequestOrigin};

/// Stores notices until they are sent.
#[async_trait]
pub trait NoticeStore: Send + Sync {
    /// Enqueues a notice, which is due at once.
    async fn enqueue_notice(&self, notice: &Notice) -> Result<(), StoreError>;

    /// Leases up to `limit` due notices. A notice whose lease expires is leased again.
    async fn claim_notices(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<NoticeClaim>, StoreError>;

    /// Ends a claim: the notice is due again at `retry_at`, or is deleted. Returns `false`, and
    /// changes nothing, if the claim was lost to a later one.
    async fn settle_notice(
        &self,
        claim: &NoticeClaim,
        retry_at: Option<DateTime<Utc>>,
    ) -> Result<bool, StoreError>;
}

/// A notice to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub id: NoticeId,
    pub user: UserId,
    pub event: AccountEvent,
    pub at: DateTime<Utc>,
    pub from: RequestOrigin,
}

/// A claim of a notice to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeClaim {
    pub notice: Notice,
    pub email: Email,
    /// The number of the attempt, from 1. It is also the fence against a lost claim.
    pub attempt: i32,
}
