//! Account links, with which members choose a password, and the queue of the mails that bring them.

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

/// Stores account links, one per member at a time.
#[async_trait]
pub trait AccountLinkStore: Send + Sync {
    /// Enqueues a mail with a link, which is due at once. An earlier link of the member is void
    /// from then on.
    async fn enqueue_link(&self, link: &AccountLink) -> Result<(), StoreError>;

    /// Returns a link that has not expired, with its member.
    async fn link(
        &self,
        id: AccountLinkId,
        now: DateTime<Utc>,
    ) -> Result<Option<(AccountLink, StoredUser)>, StoreError>;

    /// Sets the password of the link's member, ends all their sign-ins, and deletes their known
    /// browsers and the link. Returns `false` if the link has expired or was used. Of two
    /// concurrent calls one succeeds.
    async fn use_link(
        &self,
        id: AccountLinkId,
        password: &PasswordHash,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Returns the links of a team's members, with the states of their mails.
    async fn links(&self, team: TeamId) -> Result<Vec<(AccountLink, Mailed)>, StoreError>;

    /// Leases up to `limit` due mails of links that have not expired. A mail whose lease expires is
    /// leased again.
    async fn claim_mails(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<MailClaim>, StoreError>;

    /// Ends a claim. Returns `false`, and changes nothing, if the claim was lost to a later one or
    /// the link no longer exists.
    async fn settle_mail(
        &self,
        claim: &MailClaim,
        outcome: NotificationOutcome,
    ) -> Result<bool, StoreError>;

    /// Deletes links that expired before `now` and returns their number.
    async fn delete_expired_links(&self, now: DateTime<Utc>) -> Result<usize, StoreError>;
}

/// A link with which a member chooses a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountLink {
    pub id: AccountLinkId,
    pub user: UserId,
    pub purpose: LinkPurpose,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

/// The state of a mail with a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mailed {
    Queued,
    Sent,
    /// The mail failed; the reason is one word.
    Failed(String),
}

/// A claim of a mail to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailClaim {
    pub link: AccountLink,
    pub email: Email,
    /// Whether another member has the address, so that the link is useless to the reader of the
    /// mail.
    pub is_taken: bool,
    /// The name of the member's team.
    pub team: String,
    /// The number of the attempt, from 1. It is also the fence against a lost claim.
    pub attempt: i32,
}
