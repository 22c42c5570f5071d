//! The fourteen statuses of a session that partners see.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! statuses {
    ($($variant:ident => $wire:literal,)+) => {
        /// The status of a session, as it is named on the wire and in the database.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Status { $(#[serde(rename = $wire)] $variant,)+ }

        impl Status {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }
        }

        impl FromStr for Status {
            type Err = UnknownStatus;

            fn from_str(text: &str) -> Result<Self, UnknownStatus> {
                match text {
                    $($wire => Ok(Self::$variant),)+
                    _ => Err(UnknownStatus),
                }
            }
        }
    };
}

statuses! {
    Created => "CREATED",
    Initializing => "INITIALIZING",
    Ready => "READY",
    Connected => "CONNECTED",
    LoadingTree => "LOADING_TREE",
    Running => "RUNNING",
    AwaitingUser => "AWAITING_USER",
    CollectingData => "COLLECTING_DATA",
    Verifying => "VERIFYING",
    Completed => "COMPLETED",
    PartialComplete => "PARTIAL_COMPLETE",
    Error => "ERROR",
    Cancelled => "CANCELLED",
    Terminated => "TERMINATED",
}

impl Status {
    /// Returns whether a session with this status never changes again.
    #[must_use]
    pub const fn is_closed(self) -> bool {
        match self {
            Self::Completed
            | Self::PartialComplete
            | Self::Error
            | Self::Cancelled
            | Self::Terminated => true,
            Self::Created
            | Self::Initializing
            | Self::Ready
            | Self::Connected
            | Self::LoadingTree
            | Self::Running
            | Self::AwaitingUser
            | Self::CollectingData
            | Self::Verifying => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown session status")]
pub struct UnknownStatus;
