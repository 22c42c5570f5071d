//! Telling an applicant where to go: over which channel, how often, and why that failed.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    id::{TeamId, TemplateId},
    request::Contact,
};

/// How often a session's link is sent at most, the first time included.
pub const MAX_NOTIFICATIONS: i32 = 5;
/// How long one sending has to lie behind the next.
pub const MIN_NOTIFICATION_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// How often one sending is tried at most.
pub const MAX_NOTIFICATION_ATTEMPTS: i32 = 7;

/// A way to an applicant. Partners know it as a number, which stays what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Email,
    Whatsapp,
    Sms,
}

impl Channel {
    pub const ALL: &'static [Self] = &[Self::Email, Self::Whatsapp, Self::Sms];

    #[must_use]
    pub const fn id(self) -> i64 {
        match self {
            Self::Email => 1,
            Self::Whatsapp => 2,
            Self::Sms => 3,
        }
    }

    #[must_use]
    pub fn of(id: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|channel| channel.id() == id)
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Whatsapp => "whatsapp",
            Self::Sms => "sms",
        }
    }

    /// Where this receiver is reached over it.
    #[must_use]
    pub fn address(self, receiver: &Contact) -> Option<&str> {
        match self {
            Self::Email => receiver.email.as_deref(),
            Self::Whatsapp | Self::Sms => receiver.phone.as_deref(),
        }
    }

    /// The member of `receiverData` that it needs.
    #[must_use]
    pub const fn required_field(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Whatsapp | Self::Sms => "phone",
        }
    }
}

/// That the service sends the link, chosen at creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub channel: Channel,
    /// The business in whose name it is sent; none: the service's own.
    pub sender: Option<String>,
    /// The wording that was asked for; none: the team's default, or the service's own.
    #[serde(default)]
    pub template: Option<TemplateId>,
}

/// Where a team's mails go. Whoever has the mark alone does not have the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mailbox {
    pub team: TeamId,
    /// A keyed hash of the address, whatever its case.
    pub mark: [u8; 16],
}

/// Why a link did not reach the applicant, in one word for partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationFailure {
    /// There is no such mailbox or number.
    UnknownReceiver,
    MailboxFull,
    /// Whoever takes messages for the receiver does not want this one.
    Rejected,
    /// Nobody took it in all the time that it was tried.
    Unreachable,
    /// The session ended first.
    SessionEnded,
    /// The receiver wants no more mails of this team's.
    Unsubscribed,
}

impl NotificationFailure {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownReceiver => "unknown_receiver",
            Self::MailboxFull => "mailbox_full",
            Self::Rejected => "rejected",
            Self::Unreachable => "unreachable",
            Self::SessionEnded => "session_ended",
            Self::Unsubscribed => "unsubscribed",
        }
    }
}

impl fmt::Display for NotificationFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
