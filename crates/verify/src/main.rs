//! `avouch-verify`: checks an attestation, offline, and says what it proves and what it assumes.

mod input;
mod report;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use attestation::{
    attest::{BadDisclosure, Disclosure, session_name},
    evidence::{BadEvidence, Evidence},
    full_reveal::Findings,
    portable::BadPortable,
    signed::{self, Attestation, BadAttestation, Issuer},
    zk::Spartan,
};
use clap::Parser;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use serde::Deserialize;
use uuid::Uuid;

use self::input::{Input, read};

/// The longest files of keys, of roots, and of what a session is.
const LONGEST_KEYS: usize = 1024 * 1024;
const LONGEST_ROOTS: usize = 16 * 1024 * 1024;
const LONGEST_SESSION: usize = 4096;
/// Seconds that clocks may differ.
const CLOCKS: i64 = 120;

/// Checks an attestation offline; prints what is proved and what is assumed as JSON
#[derive(Debug, Parser)]
#[command(name = "avouch-verify", version)]
struct Order {
    /// The attestation: a portable one, with all that belongs to it, or as it was exported
    file: PathBuf,
    /// The keys that are believed, as JSON: {"issuers": [{"name", "publicKey", "validFrom",
    /// "validTo", "revokedAt"}]}
    #[arg(long)]
    keys: PathBuf,
    /// The proofHash that a session told
    #[arg(long, value_name = "HEX")]
    expect_proof_hash: Option<String>,
    /// What opens the attestation's values
    #[arg(long)]
    disclosure: Option<PathBuf>,
    /// The recording, to be examined again; takes seconds and 2 GB
    #[arg(long, requires = "roots")]
    evidence: Option<PathBuf>,
    /// The certificates that the server's chain may end at
    #[arg(long, value_name = "CERTS.pem")]
    roots: Option<PathBuf>,
    /// Whose the attestation is: {"sessionId", "salt"}
    #[arg(long)]
    session: Option<PathBuf>,
    /// How old it may be: a number with s, m, h or d
    #[arg(long, value_parser = age)]
    max_age: Option<Duration>,
}

fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "it must be a number with s, m, h or d, as 24h".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// Whose an attestation is said to be.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Session {
    session_id: Uuid,
    salt: String,
}

/// The keys that are believed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    issuers: Vec<Issuer>,
}

/// Why nothing is verified. Each kind has an exit code of its own.
#[derive(Debug, thiserror::Error)]
enum Failure {
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
    #[error("it is the attestation of another session")]
    Session,
    #[error("it was signed {0} s ago, or its time is to come")]
    Age(i64),
}

impl Failure {
    const fn code(&self) -> u8 {
        match self {
            Self::File(_) => 1,
            Self::Attestation(error) => match error {
                BadAttestation::Long
                | BadAttestation::Form(_)
                | BadAttestation::NotCanonical
                | BadAttestation::Unknown(..) => 2,
                BadAttestation::Issuer | BadAttestation::NotValid | BadAttestation::Revoked => 3,
                BadAttestation::Signature => 4,
            },
            Self::Portable(_) => 2,
            Self::ProofHash(_) => 5,
            Self::Disclosure(_) => 6,
            Self::Evidence(_) => 7,
            Self::Session => 8,
            Self::Age(_) => 9,
        }
    }
}

fn main() -> ExitCode {
    let order = match Order::try_parse() {
        Ok(order) => order,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()));
        }
    };
    match verify(&order) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn verify(order: &Order) -> Result<serde_json::Value, Failure> {
    let keys = read(&order.keys, LONGEST_KEYS)?;
    let keys: Keys = serde_json::from_slice(&keys).map_err(|error| {
        Failure::File(format!("{} is no list of keys: {error}", order.keys.display()))
    })?;
    let (disclosure, evidence) = (order.disclosure.as_deref(), order.evidence.as_deref());
    let input = Input::read(&order.file, disclosure, evidence)?;
    let attestation = signed::verify(&input.attestation, &keys.issuers)?;
    if let Some(expected) = &order.expect_proof_hash
        && !expected.trim().eq_ignore_ascii_case(&attestation.proof_hash)
    {
        return Err(Failure::ProofHash(attestation.proof_hash));
    }
    let disclosure = input.disclosure.as_deref().map(|bytes| disclosed(bytes, &attestation));
    let disclosure = disclosure.transpose()?;
    input.is_of_its_subject(&attestation.body)?;
    if let Some(file) = &order.session {
        is_of(file, &attestation)?;
    }
    if let Some(most) = order.max_age {
        is_fresh(most, &attestation)?;
    }
    let files = input.evidence.as_deref().zip(order.roots.as_deref());
    let found = files.map(|files| examined(files, &attestation, disclosure.as_ref()));
    let shown = report::Shown {
        disclosure: disclosure.as_ref(),
        found: found.transpose()?,
        subject: input.subject.as_ref(),
    };
    Ok(report::report(&attestation, &shown, &keys.issuers))
}

fn is_of(file: &Path, attestation: &Attestation) -> Result<(), Failure> {
    let session: Session = serde_json::from_slice(&read(file, LONGEST_SESSION)?)
        .map_err(|error| Failure::File(format!("{}: {error}", file.display())))?;
    let salt = signed::unhex(&session.salt).and_then(|salt| salt.try_into().ok());
    let salt = salt.ok_or_else(|| Failure::File(format!("{}: bad salt", file.display())))?;
    let name = session_name(&salt, session.session_id.as_bytes());
    if name == attestation.body.session { Ok(()) } else { Err(Failure::Session) }
}

fn is_fresh(most: Duration, attestation: &Attestation) -> Result<(), Failure> {
    let signed = i64::try_from(attestation.body.time.signed / 1000).unwrap_or(i64::MAX);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(signed);
    let most = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
    if (-CLOCKS..=most).contains(&age) { Ok(()) } else { Err(Failure::Age(age)) }
}

fn examined(
    (evidence, roots): (&[u8], &Path),
    attestation: &Attestation,
    disclosure: Option<&Disclosure>,
) -> Result<Findings, Failure> {
    let evidence = Evidence::read(evidence)?;
    let bad = |error: &dyn std::fmt::Display| {
        Failure::File(format!("{} has no certificates: {error}", roots.display()))
    };
    let pem = read(roots, LONGEST_ROOTS)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| bad(&error))?;
    let anchors =
        certificates.iter().filter_map(|root| webpki::anchor_from_trusted_cert(root).ok());
    let anchors: Vec<_> = anchors.collect();
    if anchors.is_empty() {
        return Err(bad(&"none of them can be read"));
    }
    let backend = Spartan::default();
    Ok(evidence.bears_out(&attestation.body, disclosure, &backend, &anchors)?)
}

fn disclosed(bytes: &[u8], attestation: &Attestation) -> Result<Disclosure, Failure> {
    let disclosure = Disclosure::read(bytes)?;
    disclosure.opens(&attestation.body)?;
    Ok(disclosure)
}
