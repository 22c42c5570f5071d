//! `avouch-verify`: checks an attestation, offline, and says what it proves and what it assumes.

mod report;

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use attestation::{
    attest::{BadDisclosure, Disclosure, LONGEST_DISCLOSURE},
    signed::{self, Attestation, BadAttestation, Issuer},
};
use clap::Parser;
use serde::Deserialize;

/// The longest file of keys.
const LONGEST_KEYS: usize = 1024 * 1024;

/// Checks an attestation offline; prints what is proved and what is assumed as JSON
#[derive(Debug, Parser)]
#[command(name = "avouch-verify", version)]
struct Order {
    /// The attestation, as it was exported
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
    #[error("the proof hash is {0}, not the expected one")]
    ProofHash(String),
    #[error("the disclosure is refused: {0}")]
    Disclosure(#[from] BadDisclosure),
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
            Self::ProofHash(_) => 5,
            Self::Disclosure(_) => 6,
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
    let bytes = read(&order.file, signed::LONGEST)?;
    let attestation = signed::verify(&bytes, &keys.issuers)?;
    if let Some(expected) = &order.expect_proof_hash
        && !expected.trim().eq_ignore_ascii_case(&attestation.proof_hash)
    {
        return Err(Failure::ProofHash(attestation.proof_hash));
    }
    let disclosure = order.disclosure.as_deref().map(|file| disclosed(file, &attestation));
    let disclosure = disclosure.transpose()?;
    Ok(report::report(&attestation, disclosure.as_ref(), &keys.issuers))
}

fn disclosed(file: &Path, attestation: &Attestation) -> Result<Disclosure, Failure> {
    let disclosure = Disclosure::read(&read(file, LONGEST_DISCLOSURE)?)?;
    disclosure.opens(&attestation.body)?;
    Ok(disclosure)
}

/// A file that is not longer than that; one byte more is read to tell.
fn read(file: &Path, longest: usize) -> Result<Vec<u8>, Failure> {
    let cannot = |error| Failure::File(format!("{} cannot be read: {error}", file.display()));
    let mut bytes = vec![];
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file).map_err(cannot)?.take(most).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}
