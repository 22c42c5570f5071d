//! Errors that end a conversation without an attestation, and whether a retry may succeed.

use std::time::Duration;

use attestation::body::MAX_CHALLENGE_BYTES;
use worker_process::JobError;

use crate::{KeyError, log::SignError, relay::RelayError};

/// Why a conversation ends without an attestation. The prover receives the text.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConversationError {
    #[error("too many conversations")]
    TooManyConversations,
    #[error("too many conversations of this client")]
    TooManyOfClient,
    #[error("too many examinations are waiting")]
    QueueFull,
    #[error("no examination could start within {0:?}")]
    QueueTimeout(Duration),
    #[error("the connection ended, or a message was late or malformed")]
    BrokenChannel,
    #[error("the message is not allowed in this state")]
    UnexpectedMessage,
    #[error("unknown client")]
    UnknownClient,
    #[error("the challenge is longer than {MAX_CHALLENGE_BYTES} bytes")]
    ChallengeTooLong,
    #[error("the descriptor is not allowed in this version")]
    UnknownDescriptor,
    #[error("the descriptor does not allow this mode")]
    ModeNotAllowed,
    #[error("the reveal message has another mode than the open message")]
    ModeMismatch,
    #[error("this session has been attested or is being attested")]
    DuplicateSession,
    #[error("too many challenges are counted, of this client or of all clients")]
    TooManyChallenges,
    #[error("{0}")]
    Relay(#[from] RelayError),
    #[error("the relayed connection took longer than {} s", .0.as_secs())]
    RelayTimeout(Duration),
    #[error("failed to examine the recording: {0}")]
    Job(#[from] JobError),
    #[error("the recording was refused: {0}")]
    RecordingRefused(String),
    #[error("the examination's result belongs to another recording")]
    ResultMismatch,
    #[error("{0}")]
    Sign(#[from] SignError),
    #[error("the attestor's key has expired or was revoked meanwhile")]
    KeyExpired,
    #[error("the attestor has no key that is valid now")]
    Key(#[from] KeyError),
}

impl ConversationError {
    /// Returns whether the same request may succeed a little later: capacity or time was missing,
    /// and the request itself was valid.
    pub(super) const fn is_temporary(&self) -> bool {
        match self {
            Self::TooManyConversations
            | Self::TooManyOfClient
            | Self::QueueFull
            | Self::QueueTimeout(_)
            | Self::RelayTimeout(_)
            | Self::Job(JobError::TimedOut(_) | JobError::Died | JobError::Start(_)) => true,
            Self::BrokenChannel
            | Self::UnexpectedMessage
            | Self::UnknownClient
            | Self::ChallengeTooLong
            | Self::UnknownDescriptor
            | Self::ModeNotAllowed
            | Self::ModeMismatch
            | Self::DuplicateSession
            | Self::TooManyChallenges
            | Self::Relay(_)
            | Self::Job(JobError::TooLong)
            | Self::RecordingRefused(_)
            | Self::ResultMismatch
            | Self::Sign(_)
            | Self::KeyExpired
            | Self::Key(_) => false,
        }
    }
}
