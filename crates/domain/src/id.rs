//! Identifiers: one newtype a kind, so that two kinds never swap places.

use std::{fmt, num::ParseIntError, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self { Self(uuid) }
            #[must_use]
            pub const fn as_uuid(&self) -> &Uuid { &self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> { text.parse().map(Self) }
        }
    )+};
}

ids! {
    /// A verification session, as partners see it in paths.
    SessionId;
    /// The record of an API key; it owns the sessions made with the key and stays the same when
    /// the key is rotated.
    ApiKeyId;
    /// A partner's team: the owner of keys and webhooks.
    TeamId;
    /// One remote browser. Named before it is started.
    BrowserId;
    /// One running process of the service, new at each start.
    InstanceId;
    /// A webhook a team has configured.
    WebhookId;
    /// What one webhook is told about one session; the `webhook-id` on the wire.
    DeliveryId;
    /// One sending of a session's link to the applicant.
    NotificationId;
    /// Somebody whom a team has registered to be verified.
    ContactId;
    /// A person who uses the portal.
    UserId;
    /// One time that a person signed in to the portal, until they sign out.
    SignInId;
    /// A key in somebody's device that they show beside their password.
    PasskeyId;
    /// What a person may choose a password with, once.
    AccountLinkId;
    /// A mail that tells a person what happened to their account.
    NoticeId;
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> { text.parse().map(Self) }
        }
    )+};
}

// What partners know as numbers.
numbers! {
    /// A platform an applicant can prove an account at.
    PlatformId;
    /// A team's own wording of a mail.
    TemplateId;
}
