//! Notifications to applicants and mails to members: their queue, their channels, their rendering.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    account::{Email, LinkPurpose},
    branding::Brand,
    id::{AccountLinkId, NoticeId, NotificationId, SessionId, TeamId},
    notice::AccountEvent,
    notification::{Channel, NotificationFailure},
    secret::Secret,
    template::TemplateText,
};

use crate::{StoreError, account_store::RequestOrigin};

/// The queue of notifications, which the session store fills in its own writes.
#[async_trait]
pub trait NotificationQueue: Send + Sync {
    /// Leases up to `limit` due notifications: team by team in the order of their identifiers, as
    /// many of each team, the oldest first. Starts with the team after `after`, so that a team with
    /// many notifications delays no other one. A notification whose lease expires is leased again.
    async fn claim_notifications(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
        after: Option<TeamId>,
    ) -> Result<Vec<NotificationClaim>, StoreError>;

    /// Ends a claim. Returns `false`, and changes nothing, if the claim was lost to a later one.
    async fn settle_notification(
        &self,
        claim: &NotificationClaim,
        outcome: NotificationOutcome,
    ) -> Result<bool, StoreError>;

    /// Enqueues the link of an open session again, within the limits of number and interval.
    async fn notify_again(
        &self,
        session: SessionId,
        now: DateTime<Utc>,
    ) -> Result<ResendOutcome, StoreError>;
}

/// A claim of a notification to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationClaim {
    pub id: NotificationId,
    pub session: SessionId,
    pub team: TeamId,
    /// The number of the attempt, from 1. It is also the fence against a lost claim.
    pub attempt: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationOutcome {
    Sent { at: DateTime<Utc> },
    RetryAt(DateTime<Utc>),
    Failed { at: DateTime<Utc>, why: NotificationFailure },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResendOutcome {
    Queued,
    /// The last notification is too recent; the next one is allowed from this time on.
    NotBefore(DateTime<Utc>),
    /// The maximum number of notifications was sent.
    NoMore,
}

/// A notification to an applicant, independent of the channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The same in each attempt, so that a channel can recognize a duplicate.
    pub id: NotificationId,
    pub channel: Channel,
    /// The address on the channel: an e-mail address.
    pub address: String,
    pub name: Option<String>,
    /// A BCP 47 tag.
    pub locale: Option<String>,
    /// The business in whose name the notification is sent; `None` for the service's own.
    pub sender: Option<String>,
    pub brand: Brand,
    /// The team's own text; `None` for the service's.
    pub wording: Option<TemplateText>,
    /// The name of the platform, as applicants know it.
    pub platform: String,
    pub link: String,
    /// The URL of the page where the contact chooses whether to receive mails of the team.
    pub choice: String,
    pub expires_at: DateTime<Utc>,
}

/// A mail with an account link, with which a member chooses a password.
#[derive(Clone)]
pub struct AccountMail {
    /// The same in each attempt.
    pub id: AccountLinkId,
    pub address: Email,
    pub purpose: LinkPurpose,
    /// The name of the member's team.
    pub team: String,
    /// The account link; a link to the sign-in page if another member with the address has an
    /// account.
    pub link: Secret,
    pub is_taken: bool,
    pub expires_at: DateTime<Utc>,
}

/// A mail to a member about an event of their account.
#[derive(Debug, Clone)]
pub struct AccountNotice {
    /// The same in each attempt.
    pub id: NoticeId,
    pub address: Email,
    pub event: AccountEvent,
    pub at: DateTime<Utc>,
    pub from: RequestOrigin,
    /// A link to the member's account page.
    pub link: String,
}

/// A rendered mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedMail {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Renders mails from templates.
pub trait MailRenderer: Send + Sync {
    /// Renders a mail of a template for a fictitious applicant.
    ///
    /// # Errors
    /// All errors of the template, for its author.
    fn preview(
        &self,
        wording: &TemplateText,
        sender: &str,
        brand: &Brand,
    ) -> Result<RenderedMail, Vec<String>>;
}

/// Why a message was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// A retry would fail too.
    #[error("{why}: {detail}")]
    Permanent {
        why: NotificationFailure,
        /// A text for the operator's log, without the applicant's address.
        detail: String,
    },
    #[error("{0}")]
    Transient(String),
}

/// Sends notifications to applicants. A call takes seconds, bounded by a timeout.
#[async_trait]
pub trait Notifier: Send + Sync {
    async fn send(&self, notification: &Notification) -> Result<(), SendError>;
}

/// Sends mails to members. A call takes seconds, bounded by a timeout.
#[async_trait]
pub trait Mailer: Send + Sync {
    async fn mail(&self, mail: &AccountMail) -> Result<(), SendError>;

    async fn notify(&self, notice: &AccountNotice) -> Result<(), SendError>;
}
