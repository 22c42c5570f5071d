//! Notifications: the channels that bring an applicant their link, their limits, and the reasons
//! of a failure.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{
    id::{TeamId, TemplateId},
    request::Contact,
};

/// The maximum number of notifications of one session, the first included.
pub const MAX_NOTIFICATIONS: i32 = 5;
/// The minimum time between two notifications of one session.
pub const MIN_NOTIFICATION_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// The maximum number of attempts to send one notification.
pub const MAX_NOTIFICATION_ATTEMPTS: i32 = 7;

/// A channel to an applicant. Partners refer to it by a number, which never changes.
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

    /// Returns the address of the contact on this channel.
    #[must_use]
    pub fn address(self, contact: &Contact) -> Option<&str> {
        match self {
            Self::Email => contact.email.as_deref(),
            Self::Whatsapp | Self::Sms => contact.phone.as_deref(),
        }
    }

    /// Returns the member of `receiverData` that the channel requires.
    #[must_use]
    pub const fn required_field(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Whatsapp | Self::Sms => "phone",
        }
    }
}

/// The request, made when the session is created, that the service send the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub channel: Channel,
    /// The business in whose name the link is sent; `None` for the service's own.
    pub sender: Option<String>,
    /// The requested template; `None` for the team's default or, without one, the service's own.
    #[serde(default)]
    pub template: Option<TemplateId>,
}

/// An address that a team's mails go to, as a hash that does not reveal the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mailbox {
    pub team: TeamId,
    /// A keyed hash of the address, the same for upper and lower case.
    pub mark: [u8; 16],
}

/// Why a link did not reach the applicant, as partners see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationFailure {
    /// The mailbox or number does not exist.
    UnknownReceiver,
    MailboxFull,
    /// The contact's mail server or provider rejected the message.
    Rejected,
    /// No attempt reached a server that accepted the message.
    Unreachable,
    /// The session ended before the message was sent.
    SessionEnded,
    /// The contact has unsubscribed from the team's mails.
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
