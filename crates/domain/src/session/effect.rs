//! What the world owes after a move. Saved with the move, carried out after.

use serde::{Deserialize, Serialize};

use super::Lease;
use crate::id::InstanceId;

/// An order to the outside. Carried out at least once and in no fixed order, so
/// each names what it acts on, and releasing a browser beats starting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    StartBrowser {
        lease: Lease,
    },
    ReleaseBrowser {
        lease: Lease,
    },
    /// One delivery for each active webhook of the team, written in the very transaction that
    /// ends the session.
    NotifyPartner,
    /// The applicant is to be sent the link; noted in the very transaction that opens the session.
    SendLink,
    /// The bodies of the session's deliveries lose what was erased, in the very transaction that
    /// erases it.
    EraseCopies,
    /// What was recorded is to become a film; noted in the very transaction that ends the session.
    KeepRecording,
    /// Whatever was recorded is to be deleted.
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

    /// The one process that can carry this out; `None`: any can.
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
