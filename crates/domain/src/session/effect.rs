//! The effects of a transition. They are saved together with the transition and carried out
//! afterwards.

use serde::{Deserialize, Serialize};

use super::Lease;
use crate::id::InstanceId;

/// An effect on the outside world. It is carried out at least once, and in no fixed order relative
/// to others. Therefore each effect names its object, and releasing a browser takes precedence over
/// starting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    StartBrowser {
        lease: Lease,
    },
    ReleaseBrowser {
        lease: Lease,
    },
    /// Creates one delivery for each active webhook of the team, in the same transaction that ends
    /// the session.
    NotifyPartner,
    /// Sends the applicant the link; stored in the same transaction that opens the session.
    SendLink,
    /// Removes the erased data from the bodies of the session's deliveries, in the same transaction
    /// that erases it.
    EraseCopies,
    /// Assembles the recording from its segments; stored in the same transaction that ends the
    /// session.
    KeepRecording,
    /// Deletes everything that was recorded.
    ForgetRecording,
}

impl Effect {
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::StartBrowser { .. } => "start_browser",
            Self::ReleaseBrowser { .. } => "release_browser",
            Self::NotifyPartner => "notify_partner",
            Self::SendLink => "send_link",
            Self::EraseCopies => "erase_copies",
            Self::KeepRecording => "keep_recording",
            Self::ForgetRecording => "forget_recording",
        }
    }

    /// Returns the instance that has to carry this effect out; `None` if any instance can.
    #[must_use]
    pub const fn node(&self) -> Option<InstanceId> {
        match self {
            Self::StartBrowser { lease } | Self::ReleaseBrowser { lease } => Some(lease.node),
            Self::NotifyPartner
            | Self::SendLink
            | Self::EraseCopies
            | Self::KeepRecording
            | Self::ForgetRecording => None,
        }
    }
}
