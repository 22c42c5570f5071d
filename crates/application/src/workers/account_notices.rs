//! Mails members of teams what happened to their accounts.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::notice::MAX_NOTICE_AGE;
use ports::{
    StoreError,
    notice_store::{NoticeClaim, NoticeStore},
    notifier::{AccountNotice, Mailer, NotificationOutcome, SendError},
};

use super::{
    Worker,
    mail_batches::{MailQueue, send_batches},
    retries::RetryPolicy,
};

/// Sends notices.
pub struct AccountNoticeMails {
    pub notices: Arc<dyn NoticeStore>,
    pub mailer: Arc<dyn Mailer>,
    pub retries: RetryPolicy,
    /// The base URL of the portal, without a trailing slash.
    pub origin: String,
}

#[async_trait]
impl Worker for AccountNoticeMails {
    fn name(&self) -> &'static str {
        "notification mails"
    }

    async fn run(&self) {
        send_batches(self, &self.retries).await;
    }
}

#[async_trait]
impl MailQueue for AccountNoticeMails {
    type Claim = NoticeClaim;

    const CLAIM_FAILED: &'static str = "failed to claim notification mails, retrying";
    const SETTLE_FAILED: &'static str =
        "failed to record the result of a notification mail; it may be sent again";

    async fn claim(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<NoticeClaim>, StoreError> {
        self.notices.claim_notices(now, lease, limit).await
    }

    async fn send(&self, claim: &NoticeClaim) -> Result<(), SendError> {
        let notice = &claim.notice;
        let mail = AccountNotice {
            id: notice.id,
            address: claim.email.clone(),
            event: notice.event,
            at: notice.at,
            from: notice.from.clone(),
            link: format!("{}/portal/account", self.origin),
        };
        self.mailer.notify(&mail).await
    }

    fn log_failure(&self, claim: &NoticeClaim, error: &SendError) {
        let (id, attempt) = (claim.notice.id, claim.attempt);
        tracing::warn!(mail.id = %id, %error, "attempt {attempt} to send a notice failed");
    }

    fn attempt(&self, claim: &NoticeClaim) -> i32 {
        claim.attempt
    }

    /// Forgets the notice, or keeps it for another attempt that is not later than
    /// [`MAX_NOTICE_AGE`].
    async fn settle(
        &self,
        claim: &NoticeClaim,
        outcome: NotificationOutcome,
    ) -> Result<(), StoreError> {
        let again = match outcome {
            NotificationOutcome::RetryAt(due) if due - claim.notice.at < MAX_NOTICE_AGE => {
                Some(due)
            }
            NotificationOutcome::RetryAt(_)
            | NotificationOutcome::Sent { .. }
            | NotificationOutcome::Failed { .. } => None,
        };
        self.notices.settle_notice(claim, again).await.map(drop)
    }
}
