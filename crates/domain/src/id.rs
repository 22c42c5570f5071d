//! Identifiers: one newtype per kind, so that the compiler tells two kinds apart.

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
            pub const fn from_u128(value: u128) -> Self { Self(Uuid::from_u128(value)) }
            #[must_use]
            pub const fn as_uuid(&self) -> &Uuid { &self.0 }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self { Self(uuid) }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self { id.0 }
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
    /// Identifies a verification session; partners see it in paths.
    SessionId;
    /// Identifies the record of an API key. The record owns the sessions created with the key and
    /// stays the same when the key is rotated.
    ApiKeyId;
    /// Identifies a partner's team, which owns keys and webhooks.
    TeamId;
    /// Identifies one remote browser. Chosen before the browser is started.
    BrowserId;
    /// Identifies one running process of the service; new at each start.
    InstanceId;
    /// Identifies a webhook that a team has configured.
    WebhookId;
    /// Identifies the delivery of one event to one webhook; the `webhook-id` on the wire.
    DeliveryId;
    /// Identifies one notification with a session's link to the applicant.
    NotificationId;
    /// Identifies a contact that a team has registered.
    ContactId;
    /// Identifies a member who uses the portal.
    UserId;
    /// Identifies a member's sign-in to the portal, which lasts until they sign out.
    SignInId;
    /// Identifies a passkey, which a member uses in addition to their password.
    PasskeyId;
    /// Identifies a single-use link with which a member chooses a password.
    AccountLinkId;
    /// Identifies a mail about a member's account.
    NoticeId;
    /// Identifies a definition that an author is writing.
    DraftId;
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

// These identifiers are numbers in the API.
numbers! {
    /// Identifies a platform on which an applicant can prove an account.
    PlatformId;
    /// Identifies a team's own mail template.
    TemplateId;
}
