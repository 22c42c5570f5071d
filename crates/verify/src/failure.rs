//! Why an attestation is not accepted, and the exit code of each kind.

use attestation::{
    attest::BadDisclosure, evidence::BadEvidence, portable::BadPortable, signed::BadAttestation,
};
use serde_json::{Value, json};

use crate::log::NotLogged;

/// What the program exits with, for `--help`; the table in docs/partners-guide.md is the same.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
   0  accepted
   1  file         a file cannot be read or has no such content; also a wrong command line
   2  attestation  it is none, or of an unknown version
   3  key          its key is not listed, was not valid then, or was revoked
   4  signature    its signature is wrong
   5  proofHash    it has another hash than --expect-proof-hash
   6  disclosure   the disclosure does not open it
   7  evidence     the evidence or its proof does not bear it out
   8  session      it is of another session
   9  age          it is older than --max-age, or from the future
  10  host         it is of another server than --host
  11  platform     it is of another platform than --platform
  12  descriptor   it was made under another descriptor than --descriptor
  13  mode         it was made in a mode that was not asked for
  14  level        less was verified than is asked for: see --level
  15  challenge    it has another challenge than --challenge
  16  partner      it was made for another partner than --partner
  17  field        a --require-field is not attested, or not opened
  18  attempt      it took more attempts than --max-attempt
  19  log          its place in the attestor's log is not proved, or is not in --log
From 10 on it is a genuine attestation: the report is printed too, with \"accepted\": false.

Unless --mode or --level asks for less, only zktls-full and zktls-request are accepted, and only with
the evidence: of a portable attestation always, of other files where --roots or anything else than the
hash is expected. Files that are named without that are verified as far as they go, and \"level\" in the
report says how far: at signature and disclosure it is the attestor's word.";

/// Why nothing is accepted. Each kind has an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    File(String),
    #[error("the attestation is refused: {0}")]
    Attestation(#[from] BadAttestation),
    #[error("the portable attestation is refused: {0}")]
    Portable(#[from] BadPortable),
    #[error("the proof hash is {0}, not the expected one")]
    ProofHash(String),
    #[error("the disclosure is refused: {0}")]
    Disclosure(#[from] BadDisclosure),
    #[error("the evidence is refused: {0}")]
    Evidence(#[from] BadEvidence),
    #[error("the evidence is refused: its examination broke off, which no sound evidence does")]
    Panic,
    #[error("it is the attestation of another session")]
    Session,
    #[error("it was signed {0} s ago, or its time is to come")]
    Age(i64),
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
}

/// What a genuine attestation has other than was expected of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unexpected {
    #[error("it is of {0}:{1}, not of the expected server")]
    Host(String, u16),
    #[error("it is of platform {0}, not of the expected one")]
    Platform(u32),
    #[error("it was made under the descriptor {0}, not under the expected one")]
    Descriptor(String),
    #[error("it was made in mode {0}, which was not asked for: see --mode")]
    Mode(&'static str),
    #[error(
        "verified up to its {0}, but its {1} is asked for: see --evidence, --roots and --level"
    )]
    Level(&'static str, &'static str),
    #[error("it has {0}, not the expected one")]
    Challenge(&'static str),
    #[error("it was made for another partner")]
    Partner,
    #[error("field {0} is not attested")]
    NotAttested(String),
    #[error("field {0} is attested, but its value was not disclosed")]
    NotOpened(String),
    #[error("it is of attempt {0}, and {1} may be made")]
    Attempt(u32, u32),
    #[error(transparent)]
    Log(NotLogged),
}

impl From<NotLogged> for Failure {
    fn from(error: NotLogged) -> Self {
        Self::Unexpected(Unexpected::Log(error))
    }
}

impl Failure {
    /// A wrong command line, in one line.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        let line = lines.collect::<Vec<_>>().join(" ");
        Self::File(line.strip_prefix("error: ").unwrap_or(&line).to_owned())
    }

    /// The exit code and its name.
    pub(crate) const fn class(&self) -> (u8, &'static str) {
        match self {
            Self::File(_) => (1, "file"),
            Self::Attestation(error) => match error {
                BadAttestation::Long
                | BadAttestation::Form(_)
                | BadAttestation::NotCanonical
                | BadAttestation::Unknown(..) => (2, "attestation"),
                BadAttestation::TooManyIssuers
                | BadAttestation::Issuer
                | BadAttestation::NotValid
                | BadAttestation::Revoked => (3, "key"),
                BadAttestation::Signature => (4, "signature"),
            },
            Self::Portable(_) => (2, "attestation"),
            Self::ProofHash(_) => (5, "proofHash"),
            Self::Disclosure(_) => (6, "disclosure"),
            Self::Evidence(_) | Self::Panic => (7, "evidence"),
            Self::Session => (8, "session"),
            Self::Age(_) => (9, "age"),
            Self::Unexpected(unexpected) => match unexpected {
                Unexpected::Host(..) => (10, "host"),
                Unexpected::Platform(_) => (11, "platform"),
                Unexpected::Descriptor(_) => (12, "descriptor"),
                Unexpected::Mode(_) => (13, "mode"),
                Unexpected::Level(..) => (14, "level"),
                Unexpected::Challenge(_) => (15, "challenge"),
                Unexpected::Partner => (16, "partner"),
                Unexpected::NotAttested(_) | Unexpected::NotOpened(_) => (17, "field"),
                Unexpected::Attempt(..) => (18, "attempt"),
                Unexpected::Log(_) => (19, "log"),
            },
        }
    }

    /// As the report has it.
    pub(crate) fn json(&self) -> Value {
        let (code, class) = self.class();
        json!({ "code": code, "class": class, "message": self.to_string() })
    }
}
