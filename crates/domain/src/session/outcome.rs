//! How a session ended, with what it is to tell of that.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Status;
use crate::{error_code::ErrorCode, workflow::AttestMode};

/// The data read from the applicant's account, as the platform's definition names it.
pub type ExtractedData = Map<String, Value>;

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

impl Outcome {
    pub(super) const fn status(&self) -> Status {
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
