//! Sending an applicant the link of a session: the queue of what is to be sent, and the channels.

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

/// The queue of links to be sent, filled by the session store in its own writes.
#[async_trait]
pub trait NotificationQueue: Send + Sync {
    /// Leases up to `limit` links that are due, of one team after the other in the order of their
    /// identifiers, as many of each, and the oldest of each first. Begins with the team after
    /// `after`, so that one with many links holds up no other. A lease that runs out is handed out
    /// again.
    async fn claim_notifications(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
        after: Option<TeamId>,
    ) -> Result<Vec<NotificationClaim>, StoreError>;

    /// Ends a claim. Answers `false`, and changes nothing, when the claim was lost to a later one.
    async fn settle_notification(
        &self,
        claim: &NotificationClaim,
        verdict: NotificationOutcome,
    ) -> Result<bool, StoreError>;

    /// Owes an open session's link once more, as often and as soon as that may be.
    async fn notify_again(
        &self,
        session: SessionId,
        now: DateTime<Utc>,
    ) -> Result<ResendOutcome, StoreError>;
}

/// The right to send a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationClaim {
    pub id: NotificationId,
    pub session: SessionId,
    pub team: TeamId,
    /// Counts from 1; also the fence against a lost claim.
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
    /// The last time is too near; not before then.
    NotBefore(DateTime<Utc>),
    /// It was sent as often as may be.
    NoMore,
}

/// What an applicant is told, whatever the channel makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The same at each try, so that a channel that knows it need not send it twice.
    pub id: NotificationId,
    pub channel: Channel,
    /// As the channel has it: an e-mail address.
    pub address: String,
    pub name: Option<String>,
    /// BCP 47.
    pub locale: Option<String>,
    /// The business in whose name it is sent; none: the service's own.
    pub sender: Option<String>,
    pub brand: Brand,
    /// The team's own words; none: the service's.
    pub wording: Option<TemplateText>,
    /// The platform, as applicants know it.
    pub platform: String,
    pub link: String,
    /// Where the receiver says whether to get more mails of the team's.
    pub choice: String,
    pub expires_at: DateTime<Utc>,
}

/// A mail that brings a person of the portal a link to choose a password.
#[derive(Clone)]
pub struct AccountMail {
    /// The same at each try.
    pub id: AccountLinkId,
    pub address: Email,
    pub purpose: LinkPurpose,
    /// The team that the person is in.
    pub team: String,
    /// To choose a password; to the sign-in page where another person of the address has an account.
    pub link: Secret,
    pub is_taken: bool,
    pub expires_at: DateTime<Utc>,
}

/// A mail that tells a person of the portal what happened to their account.
#[derive(Debug, Clone)]
pub struct AccountNotice {
    /// The same at each try.
    pub id: NoticeId,
    pub address: Email,
    pub event: AccountEvent,
    pub at: DateTime<Utc>,
    pub from: RequestOrigin,
    /// To their account's page.
    pub link: String,
}

/// A mail as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedMail {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Knows the template language.
pub trait MailRenderer: Send + Sync {
    /// What a mail with a wording is like, for somebody made up.
    ///
    /// # Errors
    /// Everything that is wrong with the wording, for whoever wrote it.
    fn preview(
        &self,
        wording: &TemplateText,
        sender: &str,
        brand: &Brand,
    ) -> Result<RenderedMail, Vec<String>>;
}

/// Why a letter was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Nothing will change that.
    #[error("{why}: {detail}")]
    Permanent {
        why: NotificationFailure,
        /// For the operator's log; without the applicant's address.
        detail: String,
    },
    #[error("{0}")]
    Transient(String),
}

/// Hands letters to whoever carries them on. Takes seconds, and bounded ones.
#[async_trait]
pub trait Notifier: Send + Sync {
    async fn send(&self, letter: &Notification) -> Result<(), SendError>;
}

/// Mails the people of the portal. Takes seconds, and bounded ones.
#[async_trait]
pub trait Mailer: Send + Sync {
    async fn mail(&self, mail: &AccountMail) -> Result<(), SendError>;

    async fn notify(&self, notice: &AccountNotice) -> Result<(), SendError>;
}
