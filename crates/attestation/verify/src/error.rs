//! The reasons for refusing an attestation, with their exit codes.

use attestation::{
    attest::DisclosureError, evidence::EvidenceError, portable::PortableError,
    signed::AttestationError,
};
use serde_json::{Value, json};

use crate::log::LogInclusionError;

/// The exit codes for `--help`; the table in docs/site/src/verify-attestations.md is the same.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
   0  accepted
   1  file         a file cannot be read or is malformed; also an invalid command line
   2  attestation  it is malformed or of an unknown version
   3  key          its key is not listed, was not valid at that time, or was revoked
   4  signature    its signature is invalid
   5  proofHash    its hash differs from --expect-proof-hash
   6  disclosure   the disclosure does not match its commitments
   7  evidence     the evidence or its proof does not support it
   8  session      it belongs to another session
   9  age          it is older than --max-age, or from the future
  10  host         it is for another server than --host
  11  platform     it is for another platform than --platform
  12  descriptor   it uses another descriptor than --descriptor
  13  mode         its mode is not accepted
  14  level        less was verified than is required: see --level
  15  challenge    its challenge differs from --challenge
  16  partner      it was made for another partner than --partner
  17  field        a --require-field is not attested, or not disclosed
  18  attempt      it took more attempts than --max-attempt
  19  log          its inclusion in the attestor's log is not proved, or it is not in --log
From 10 on the attestation is genuine: the report is printed too, with \"accepted\": false.

Unless --mode or --level requires less, only zktls-full and zktls-request are accepted, and only with
the evidence: for a portable attestation always, for separate files if --roots or any expectation
other than the hash is given. Other files are verified as far as possible, and \"level\" in the
report is the reached level: signature and disclosure rely on the attestor's honesty.";

/// Why an attestation is refused. Each class has its own exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error("{0}")]
    File(String),
    #[error("the attestation is refused: {0}")]
    Attestation(#[from] AttestationError),
    #[error("the portable attestation is refused: {0}")]
    Portable(#[from] PortableError),
    #[error("the proof hash is {0}, not the expected one")]
    ProofHash(String),
    #[error("the disclosure is refused: {0}")]
    Disclosure(#[from] DisclosureError),
    #[error("the evidence is refused: {0}")]
    Evidence(#[from] EvidenceError),
    #[error("the evidence is refused: its examination panicked, which valid evidence never causes")]
    ExaminationPanicked,
    #[error("the attestation belongs to another session")]
    Session,
    #[error("it was signed {0} s ago, or its time is in the future")]
    Age(i64),
    #[error(transparent)]
    Unexpected(#[from] ExpectationError),
}

/// How a genuine attestation differs from an expectation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpectationError {
    #[error("it is for {0}:{1}, not for the expected server")]
    Host(String, u16),
    #[error("it is for platform {0}, not for the expected one")]
    Platform(u32),
    #[error("it uses the descriptor {0}, not the expected one")]
    Descriptor(String),
    #[error("its mode {0} is not accepted: see --mode")]
    Mode(&'static str),
    #[error("verified up to its {0}, but its {1} is required: see --evidence, --roots and --level")]
    Level(&'static str, &'static str),
    #[error("it has {0}, not the expected one")]
    Challenge(&'static str),
    #[error("it was made for another partner")]
    Partner,
    #[error("field {0} is not attested")]
    NotAttested(String),
    #[error("field {0} is attested, but its value was not disclosed")]
    NotDisclosed(String),
    #[error("it took {0} attempts, more than {1}")]
    Attempt(u32, u32),
    #[error(transparent)]
    Log(LogInclusionError),
}

impl From<LogInclusionError> for VerifyError {
    fn from(error: LogInclusionError) -> Self {
        Self::Unexpected(ExpectationError::Log(error))
    }
}

impl VerifyError {
    /// Converts an invalid command line to an error of one line.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        let line = lines.collect::<Vec<_>>().join(" ");
        Self::File(line.strip_prefix("error: ").unwrap_or(&line).to_owned())
    }

    /// Returns the exit code and its class.
    pub(crate) const fn class(&self) -> (u8, &'static str) {
        match self {
            Self::File(_) => (1, "file"),
            Self::Attestation(error) => match error {
                AttestationError::TooLong
                | AttestationError::Malformed(_)
                | AttestationError::NotCanonical
                | AttestationError::UnsupportedVersion(..) => (2, "attestation"),
                AttestationError::TooManyIssuers
                | AttestationError::Issuer
                | AttestationError::NotValid
                | AttestationError::Revoked => (3, "key"),
                AttestationError::Signature => (4, "signature"),
            },
            Self::Portable(_) => (2, "attestation"),
            Self::ProofHash(_) => (5, "proofHash"),
            Self::Disclosure(_) => (6, "disclosure"),
            Self::Evidence(_) | Self::ExaminationPanicked => (7, "evidence"),
            Self::Session => (8, "session"),
            Self::Age(_) => (9, "age"),
            Self::Unexpected(unexpected) => match unexpected {
                ExpectationError::Host(..) => (10, "host"),
                ExpectationError::Platform(_) => (11, "platform"),
                ExpectationError::Descriptor(_) => (12, "descriptor"),
                ExpectationError::Mode(_) => (13, "mode"),
                ExpectationError::Level(..) => (14, "level"),
                ExpectationError::Challenge(_) => (15, "challenge"),
                ExpectationError::Partner => (16, "partner"),
                ExpectationError::NotAttested(_) | ExpectationError::NotDisclosed(_) => {
                    (17, "field")
                }
                ExpectationError::Attempt(..) => (18, "attempt"),
                ExpectationError::Log(_) => (19, "log"),
            },
        }
    }

    /// Returns the error as it appears in the report.
    pub(crate) fn json(&self) -> Value {
        let (code, class) = self.class();
        json!({ "code": code, "class": class, "message": self.to_string() })
    }
}
