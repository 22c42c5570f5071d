//! Mails members of teams the links with which they choose a password.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::secret::Secret;
use ports::{
    StoreError,
    account_links::{AccountLinkStore, MailClaim},
    notifier::{AccountMail, Mailer, NotificationOutcome, SendError},
    tokens::TokenIssuer,
};

use super::{
    Worker,
    mail_batches::{MailQueue, send_batches},
    retries::RetryPolicy,
};

/// Sends account links.
pub struct AccountLinkMails {
    pub links: Arc<dyn AccountLinkStore>,
    pub mailer: Arc<dyn Mailer>,
    pub tokens: Arc<dyn TokenIssuer>,
    pub retries: RetryPolicy,
    /// The base URL of the portal, without a trailing slash.
    pub origin: String,
}

#[async_trait]
impl Worker for AccountLinkMails {
    fn name(&self) -> &'static str {
        "portal mails"
    }

    async fn run(&self) {
        send_batches(self, &self.retries).await;
    }
}

#[async_trait]
impl MailQueue for AccountLinkMails {
    type Claim = MailClaim;

    const CLAIM_FAILED: &'static str = "failed to claim portal mails, retrying";
    const SETTLE_FAILED: &'static str =
        "failed to record the result of a portal mail; it may be sent again";

    async fn claim(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<MailClaim>, StoreError> {
        self.links.claim_mails(now, lease, limit).await
    }

    async fn send(&self, claim: &MailClaim) -> Result<(), SendError> {
        let (id, origin) = (claim.link.id, &self.origin);
        let token = self.tokens.account_link_token(id);
        let link = if claim.is_taken {
            format!("{origin}/portal/sign-in")
        } else {
            format!("{origin}/portal/password?link={}", token.expose())
        };
        let mail = AccountMail {
            id,
            address: claim.email.clone(),
            purpose: claim.link.purpose,
            team: claim.team.clone(),
            link: Secret::new(link),
            is_taken: claim.is_taken,
            expires_at: claim.link.expires_at,
        };
        self.mailer.mail(&mail).await
    }

    fn log_failure(&self, claim: &MailClaim, error: &SendError) {
        let (id, attempt) = (claim.link.id, claim.attempt);
        tracing::warn!(mail.id = %id, %error, "attempt {attempt} to send a mail failed");
    }

    fn attempt(&self, claim: &MailClaim) -> i32 {
        claim.attempt
    }

    /// Records the outcome. Where the store refuses it, the link is gone or another process has
    /// claimed the mail.
    async fn settle(
        &self,
        claim: &MailClaim,
        outcome: NotificationOutcome,
    ) -> Result<(), StoreError> {
        self.links.settle_mail(claim, outcome).await.map(drop)
    }
}
