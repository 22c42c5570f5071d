//! The queue of mails that tell people what happened to their account.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::Email,
    id::{NoticeId, UserId},
    notice::AccountEvent,
};

use crate::{StoreError, account_store::RequestOrigin};

/// Keeps what people are to be told. What was told is forgotten.
#[async_trait]
pub trait NoticeStore: Send + Sync {
    /// Owes a person a mail, which is due at once.
    async fn enqueue_notice(&self, notice: &Notice) -> Result<(), StoreError>;

    /// Leases up to `limit` mails that are due. A lease that runs out is handed out again.
    async fn claim_notices(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<NoticeClaim>, StoreError>;

    /// Ends a claim: the mail is due again then, or forgotten. Answers `false`, and changes nothing,
    /// when the claim was lost to a later one.
    async fn settle_notice(
        &self,
        claim: &NoticeClaim,
        again: Option<DateTime<Utc>>,
    ) -> Result<bool, StoreError>;
}

/// What a person is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub id: NoticeId,
    pub user: UserId,
    pub event: AccountEvent,
    pub at: DateTime<Utc>,
    pub from: RequestOrigin,
}

/// The right to send such a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeClaim {
    pub notice: Notice,
    pub email: Email,
    /// Counts from 1; also the fence against a lost claim.
    pub attempt: i32,
}
