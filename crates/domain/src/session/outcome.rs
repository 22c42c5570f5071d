//! The outcomes of a session, each with its data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Status;
use crate::{error_code::ErrorCode, workflow::AttestMode};

/// The data read from the applicant's account, by the field names of the platform definition.
pub type ExtractedData = Map<String, Value>;

/// The data read from the account, and the optional fields that could not be read.
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

/// The attestation of a session: its hash and its scope.
///
/// It is stored beside the other members of an [`Outcome`]. Sessions that ended before the scope
/// was stored have only `proof`: no field and no mode is claimed for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedAttestation {
    pub proof: ProofHash,
    /// The fields whose values the attestation proves, in ascending order. The values of the other
    /// fields come from the browser, without a proof.
    #[serde(default, rename = "attested_fields")]
    pub fields: Vec<String>,
    /// How much of the exchange the attestor saw.
    #[serde(default, rename = "attestation_mode")]
    pub mode: Option<AttestMode>,
}

/// The SHA-256 hash that identifies an attestation: 64 lower-case hexadecimal digits.
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

/// How the applicant cancelled the session.
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

    /// Returns the error code of this outcome, if it has one.
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

    /// Returns the data that the applicant agreed to share; only a session that reached its goal
    /// has it.
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

    /// Returns the names of the requested fields that could not be read.
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

    /// Returns the attestation that the session ended with.
    #[must_use]
    pub const fn attestation(&self) -> Option<&IssuedAttestation> {
        match self {
            Self::Completed { attestation, .. } | Self::PartialComplete { attestation, .. } => {
                attestation.as_ref()
            }
            Self::Error { .. } | Self::Cancelled { .. } | Self::Terminated => None,
        }
    }

    /// Returns the hash of that attestation.
    #[must_use]
    pub fn proof(&self) -> Option<&ProofHash> {
        self.attestation().map(|attestation| &attestation.proof)
    }
}
