//! What a session is right now, with exactly the data that state can have.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Status;
use crate::{
    error_code::ErrorCode,
    id::{BrowserId, NodeId},
    workflow::{AskKind, AttestMode},
};

/// How many browsers a session may lose before it fails: the third loss ends it.
pub const LOSSES_ALLOWED: u8 = 2;

/// The data read from the applicant's account, as the platform's definition names it.
pub type ExtractedData = Map<String, Value>;

/// A browser under the name we gave it, and the process that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub browser: BrowserId,
    pub node: NodeId,
}

/// Where a session stands.
///
/// A browser is named before it is started and lives from [`State::Live`] on, so "ready without
/// a browser" cannot be written down. Closed is for good. `losses` counts the browsers that were
/// lost on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Created {
        losses: u8,
    },
    Initializing {
        lease: Lease,
        losses: u8,
    },
    Live {
        lease: Lease,
        losses: u8,
        phase: Phase,
    },
    /// `ran` is the browser that was up when the session ended, if one was.
    Closed {
        outcome: Outcome,
        ran: Option<BrowserId>,
    },
}

/// What is going on inside a leased browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    Ready,
    Connected,
    LoadingTree,
    Running,
    AwaitingUser {
        ask: Ask,
        then: Resume,
    },
    CollectingData,
    Verifying {
        collected: Collected,
        #[serde(default)]
        step: Certifying,
    },
}

/// How far what was collected is on its way to being attested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certifying {
    #[default]
    Asked,
    /// The witness has recorded what the platform's server answered.
    Recorded,
    /// What proves the recording to the witness is made; it examines it.
    Proved,
}

/// What the applicant is waited for, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub kind: AskKind,
    /// The name of the text that tells the applicant what to do.
    pub text_key: String,
    pub deadline: DateTime<Utc>,
}

/// Where a session goes on once the applicant has acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    Running,
    CollectingData,
}

/// What was read from the account, and which of the optional fields could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    pub data: ExtractedData,
    pub missing: Vec<String>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Completed {
        data: ExtractedData,
        #[serde(flatten)]
        attestation: Option<IssuedAttestation>,
    },
    PartialComplete {
        collected: Collected,
        why: ErrorCode,
        #[serde(flatten)]
        attestation: Option<IssuedAttestation>,
    },
    Error {
        why: ErrorCode,
    },
    Cancelled {
        why: CancelReason,
    },
    Terminated,
}

/// What a session keeps of its attestation: which it is, and what it covers.
///
/// Stored beside the other members of an [`Outcome`]. Sessions that ended before the scope was
/// stored have `proof` alone: no field and no mode is claimed for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedAttestation {
    pub proof: ProofHash,
    /// The fields of the data whose values the attestation proves, in ascending order. Values of
    /// other fields are what the browser showed, without a proof.
    #[serde(default, rename = "attested_fields")]
    pub fields: Vec<String>,
    /// How much of the exchange the attestor saw.
    #[serde(default, rename = "attestation_mode")]
    pub mode: Option<AttestMode>,
}

/// The SHA-256 hash that stands for an attestation: 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProofHash(String);

impl ProofHash {
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let hex = text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        hex.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The applicant's will not to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    Applicant,
    ConsentDeclined,
}

impl State {
    pub const START: Self = Self::Created { losses: 0 };

    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Created { .. } => Status::Created,
            Self::Initializing { .. } => Status::Initializing,
            Self::Live { phase, .. } => phase.status(),
            Self::Closed { outcome, .. } => outcome.status(),
        }
    }

    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// The browser that is starting or running.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Initializing { lease, .. } | Self::Live { lease, .. } => Some(*lease),
            Self::Created { .. } | Self::Closed { .. } => None,
        }
    }

    /// Whether a browser is up, or was and has been lost.
    #[must_use]
    pub const fn has_run(&self) -> bool {
        match self {
            Self::Live { .. } => true,
            Self::Created { losses } | Self::Initializing { losses, .. } => *losses > 0,
            Self::Closed { .. } => false,
        }
    }

    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Closed { outcome, .. } => Some(outcome),
            Self::Created { .. } | Self::Initializing { .. } | Self::Live { .. } => None,
        }
    }

    /// What the applicant is being waited for, while that is so.
    #[must_use]
    pub const fn ask(&self) -> Option<&Ask> {
        match self {
            Self::Live { phase: Phase::AwaitingUser { ask, .. }, .. } => Some(ask),
            Self::Created { .. }
            | Self::Initializing { .. }
            | Self::Live { .. }
            | Self::Closed { .. } => None,
        }
    }
}

impl Phase {
    const fn status(&self) -> Status {
        match self {
            Self::Ready => Status::Ready,
            Self::Connected => Status::Connected,
            Self::LoadingTree => Status::LoadingTree,
            Self::Running => Status::Running,
            Self::AwaitingUser { .. } => Status::AwaitingUser,
            Self::CollectingData => Status::CollectingData,
            Self::Verifying { .. } => Status::Verifying,
        }
    }
}

impl Outcome {
    const fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::PartialComplete { .. } => Status::PartialComplete,
            Self::Error { .. } => Status::Error,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Terminated => Status::Terminated,
        }
    }

    /// The catalogue's code for this ending, where it has one.
    #[must_use]
    pub const fn error_code(&self) -> Option<ErrorCode> {
        match self {
            Self::Completed { .. } | Self::Terminated => None,
            Self::PartialComplete { why, .. } | Self::Error { why } => Some(*why),
            Self::Cancelled { why: CancelReason::Applicant } => Some(ErrorCode::ApplicantCancelled),
            Self::Cancelled { why: CancelReason::ConsentDeclined } => {
                Some(ErrorCode::ConsentDeclined)
            }
        }
    }

    /// What the applicant agreed to share; only a session that reached its goal has it.
    #[must_use]
    pub const fn data(&self) -> Option<&ExtractedData> {
        match self {
            Self::Completed { data, .. } => Some(data),
            Self::PartialComplete { collected, .. } => Some(&collected.data),
            Self::Error { .. } | Self::Cancelled { .. } | Self::Terminated => None,
        }
    }

    pub(super) fn without_data(self) -> Self {
        match self {
            Self::Completed { attestation, .. } => {
                Self::Completed { data: Map::new(), attestation }
            }
            Self::PartialComplete { collected, why, attestation } => {
                let collected = Collected { data: Map::new(), ..collected };
                Self::PartialComplete { collected, why, attestation }
            }
            other @ (Self::Error { .. } | Self::Cancelled { .. } | Self::Terminated) => other,
        }
    }

    /// The names of the fields that were asked for and could not be read.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        match self {
            Self::PartialComplete { collected, .. } => &collected.missing,
            Self::Completed { .. }
            | Self::Error { .. }
            | Self::Cancelled { .. }
            | Self::Terminated => &[],
        }
    }

    /// The attestation that the session ended with.
    #[must_use]
    pub const fn attestation(&self) -> Option<&IssuedAttestation> {
        match self {
            Self::Completed { attestation, .. } | Self::PartialComplete { attestation, .. } => {
                attestation.as_ref()
            }
            Self::Error { .. } | Self::Cancelled { .. } | Self::Terminated => None,
        }
    }

    /// The hash of that attestation.
    #[must_use]
    pub fn proof(&self) -> Option<&ProofHash> {
        self.attestation().map(|attestation| &attestation.proof)
    }
}
