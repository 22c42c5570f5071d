//! Why a conversation ends without an attestation, and whether asking again may help.

use std::time::Duration;

use attestation::body::MAX_CHALLENGE_BYTES;
use jobs::JobError;

use crate::{KeyError, log::NotSigned, relay::RelayError};

/// Why a conversation ends without an attestation. The prover is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("as many conversations are under way as may be")]
    Busy,
    #[error("as many conversations of this client are under way as may be")]
    BusyClient,
    #[error("as many examinations wait as may")]
    Queue,
    #[error("no examination could begin within {0:?}")]
    Waited(Duration),
    #[error("the connection ended, or a message was late or none")]
    Broken,
    #[error("that was not to be said now")]
    OutOfPlace,
    #[error("the client is not known")]
    Client,
    #[error("the challenge is longer than {MAX_CHALLENGE_BYTES} bytes")]
    Challenge,
    #[error("no such descriptor is allowed here, in that version")]
    Descriptor,
    #[error("the descriptor does not allow this mode")]
    Mode,
    #[error("what opens the recording is of another mode than was ordered")]
    OtherMode,
    #[error("this session was, or is being, attested")]
    Session,
    #[error("as many challenges are counted as may be, of this client or of all")]
    Challenges,
    #[error("{0}")]
    Relay(#[from] RelayError),
    #[error("the connection took longer than {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("the recording cannot be examined: {0}")]
    Job(#[from] JobError),
    #[error("the recording is refused: {0}")]
    Recording(String),
    #[error("the examination's result is of another recording")]
    Examiner,
    #[error("{0}")]
    NotSigned(#[from] NotSigned),
    #[error("the attestor's key has ended or was revoked meanwhile")]
    KeyEnded,
    #[error("the attestor has no key that is valid now")]
    Key(#[from] KeyError),
}

impl Refused {
    /// Whether the same order may succeed a little later: there was no time or no place for it,
    /// and nothing was wrong with it.
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
            | Self::Job(JobError::TooLong)
            | Self::Recording(_)
            | Self::Examiner
            | Self::NotSigned(_)
            | Self::KeyEnded
            | Self::Key(_) => false,
        }
    }
}
