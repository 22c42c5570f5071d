//! Errors that end a conversation without an attestation, and whether a retry may succeed.

use std::time::Duration;

use attestation::body::MAX_CHALLENGE_BYTES;
use jobs::JobError;

use crate::{KeyError, log::NotSigned, relay::RelayError};

/// Why a conversation ends without an attestation. The prover receives the text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("too many conversations")]
    Busy,
    #[error("too many conversations of this client")]
    BusyClient,
    #[error("too many examinations are waiting")]
    Queue,
    #[error("no examination could start within {0:?}")]
    Waited(Duration),
    #[error("the connection ended, or a message was late or malformed")]
    Broken,
    #[error("the message is not allowed in this state")]
    OutOfPlace,
    #[error("unknown client")]
    Client,
    #[error("the challenge is longer than {MAX_CHALLENGE_BYTES} bytes")]
    Challenge,
    #[error("the descriptor is not allowed in this version")]
    Descriptor,
    #[error("the descriptor does not allow this mode")]
    Mode,
    #[error("the reveal message has another mode than the open message")]
    OtherMode,
    #[error("this session has been attested or is being attested")]
    Session,
    #[error("too many challenges are counted, of this client or of all clients")]
    Challenges,
    #[error("{0}")]
    Relay(#[from] RelayError),
    #[error("the relayed connection took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("failed to examine the recording: {0}")]
    Job(#[from] JobError),
    #[error("the recording was refused: {0}")]
    Recording(String),
    #[error("the examination's result belongs to another recording")]
    Examiner,
    #[error("{0}")]
    NotSigned(#[from] NotSigned),
    #[error("the attestor's key has expired or was revoked meanwhile")]
    KeyEnded,
    #[error("the attestor has no key that is valid now")]
    Key(#[from] KeyError),
}

impl Refused {
    /// Returns whether the same request may succeed a little later: capacity or time was missing,
    /// and the request itself was valid.
    pub(super) const fn is_temporary(&self) -> bool {
        match self {
            Self::Busy
            | Self::BusyClient
            | Self::Queue
            | Self::Waited(_)
            | Self::TooSlow(_)
            | Self::Job(JobError::TimedOut(_) | JobError::Died | JobError::Start(_)) => true,
            Self::Broken
            | Self::OutOfPlace
            | Self::Client
            | Self::Challenge
            | Self::Descriptor
            | Self::Mode
            | Self::OtherMode
            | Self::Session
            | Self::Challenges
            | Self::Relay(_)
            | Self::Job(JobError::Long)
            | Self::Recording(_)
            | Self::Examiner
            | Self::NotSigned(_)
            | Self::KeyEnded
            | Self::Key(_) => false,
        }
    }
}
