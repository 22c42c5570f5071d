//! Links by which people choose a password, and the queue of the mails that bring them.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Email, LinkPurpose},
    id::{AccountLinkId, TeamId, UserId},
};

use crate::{
    StoreError,
    account_store::{PasswordHash, StoredUser},
    notifier::NotificationOutcome,
};

/// Keeps links, one of each person at a time.
#[async_trait]
pub trait AccountLinkStore: Send + Sync {
    /// Owes somebody a mail with a link, which is due at once; a link that they had before opens
    /// nothing any more.
    async fn enqueue_link(&self, link: &AccountLink) -> Result<(), StoreError>;

    /// A link that has not run out, and whose it is.
    async fn link(
        &self,
        id: AccountLinkId,
        now: DateTime<Utc>,
    ) -> Result<Option<(AccountLink, StoredUser)>, StoreError>;

    /// Sets the password of whoever has this link, ends all of their sign-ins, and forgets their
    /// browsers and the link. `false`: it ran out, or was used. Of two at once one succeeds.
    async fn use_link(
        &self,
        id: AccountLinkId,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// The links of a team's people, and what became of their mails.
    async fn links(&self, team: TeamId) -> Result<Vec<(AccountLink, Mailed)>, StoreError>;

    /// Leases up to `limit` mails that are due, of links that have not run out. A lease that runs
    /// out is handed out again.
    async fn claim_mails(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<MailClaim>, StoreError>;

    /// Ends a claim. Answers `false`, and changes nothing, when it was lost to a later one, or the
    /// link is gone.
    async fn settle_mail(
        &self,
        claim: &MailClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError>;

    /// Forgets what ran out before `now`. Answers how many.
    async fn delete_expired_links(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// What somebody may choose a password with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountLink {
    pub id: AccountLinkId,
    pub user: UserId,
    pub purpose: LinkPurpose,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// What became of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mailed {
    Queued,
    Sent,
    /// In one word.
    Failed(String),
}

/// The right to send a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailClaim {
    pub link: AccountLink,
    pub email: Email,
    /// Whether another person has the address: the link would open nothing for whoever reads the
    /// mail.
    pub is_taken: bool,
    /// What the person's team is called.
    pub team: String,
    /// Counts from 1; also the fence against a lost claim.
    pub attempt: i32,
}
