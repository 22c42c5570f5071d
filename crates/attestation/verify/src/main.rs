//! `avouch-verify`: verifies an attestation offline, and reports what it proves and what it
//! assumes.

mod error;
mod examination;
mod expectations;
mod input;
mod log;
mod report;
mod statements;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use attestation::{
    attest::{Disclosure, session_hash},
    body::Body,
    signed::{self, Attestation, Issuer, RevokedKeys},
    trust_list::{MAX_TRUST_LIST_BYTES, parse_trust_list},
};
use clap::Parser;
use serde::Deserialize;
use uuid::Uuid;

use self::{
    error::{EXIT_CODES, VerifyError},
    examination::examine_evidence,
    expectations::{Expectations, Level},
    input::{VerificationInput, read},
    log::LogOptions,
    report::{Report, Verified},
};

/// Maximum length of a session file.
const MAX_SESSION_BYTES: usize = 4096;
const NO_SALT: &str =
    "--session SESSION_ID needs a portable attestation: without one, name a file with the salt";
/// Maximum number of key lists.
const MAX_KEY_FILES: usize = 16;
/// Maximum clock difference in seconds.
const MAX_CLOCK_SKEW_SECONDS: i64 = 120;

/// Verifies an attestation offline; prints what it proves and assumes as JSON
#[derive(Debug, Parser)]
#[command(name = "avouch-verify", version, after_help = EXIT_CODES)]
struct VerifyArguments {
    /// The attestation: a portable one with all of its parts, or as it was exported
    file: PathBuf,
    /// The trusted keys, as JSON: {"issuers": [{"name", "publicKey", "validFrom", "validTo",
    /// "revokedAt"}]}; may be repeated, and every entry of a key counts
    #[arg(long, required = true, value_name = "ISSUERS.json")]
    keys: Vec<PathBuf>,
    /// Accept a revoked key for attestations that state an earlier signing time; safe only for keys
    /// that were not stolen, because a thief can state any time
    #[arg(long)]
    accept_signed_before_revocation: bool,
    /// The session's proofHash
    #[arg(long, value_name = "HEX")]
    expect_proof_hash: Option<String>,
    /// The disclosure of the attestation's values
    #[arg(long, value_name = "FILE")]
    disclosure: Option<PathBuf>,
    /// The recording, to be examined again; takes seconds and 2 GB
    #[arg(long, requires = "roots", value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// The root certificates for the server's chain; makes the evidence required
    #[arg(long, value_name = "CERTS.pem")]
    roots: Option<PathBuf>,
    /// The session of the attestation: a file with {"sessionId", "salt"}, or, for a portable
    /// attestation, which has the salt, the session's identifier
    #[arg(long, value_name = "FILE|SESSION_ID")]
    session: Option<PathBuf>,
    /// Maximum age: a number with s, m, h or d
    #[arg(long, value_parser = parse_age, value_name = "AGE")]
    max_age: Option<Duration>,
    #[command(flatten)]
    expected: Expectations,
    #[command(flatten)]
    log: LogOptions,
    /// Print a refusal as JSON too, also if there is no report
    #[arg(long)]
    json: bool,
    /// Include the request and the response's head and body in the report, with undeclared data
    #[arg(long)]
    show_transcript: bool,
}

fn parse_age(text: &str) -> Result<Duration, String> {
    let invalid = || "it must be a number with s, m, h or d, such as 24h".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(invalid)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(invalid)
}

/// The file that names a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionFile {
    session_id: Uuid,
    salt: String,
}

fn main() -> ExitCode {
    let arguments = match VerifyArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let invalid = error.use_stderr();
            if invalid && asks_for_json() {
                println!("{}", Report::refused(&VerifyError::usage(&error)).json());
            }
            let _ = error.print();
            return ExitCode::from(u8::from(invalid));
        }
    };
    let mut verified = None;
    let refused = verify(&arguments, &mut verified).err();
    // There is a report only for a genuine attestation, because nothing is known about any other
    // one.
    let genuine = matches!(refused, None | Some(VerifyError::Unexpected(_)));
    let mut report = verified.filter(|_| genuine).unwrap_or_default();
    report.conclude(refused.as_ref());
    if genuine || arguments.json {
        println!("{}", report.json());
    }
    let Some(failure) = refused else { return ExitCode::SUCCESS };
    eprintln!("{failure}");
    ExitCode::from(failure.class().0)
}

/// Returns whether an invalid command line has `--json` among its options.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Checks everything in the order of the exit codes, except that the checks that take seconds come
/// last. From the signature on, `report` holds what was verified so far.
fn verify(arguments: &VerifyArguments, report: &mut Option<Report>) -> Result<(), VerifyError> {
    let issuers = read_issuers(&arguments.keys)?;
    let (disclosure, evidence) = (arguments.disclosure.as_deref(), arguments.evidence.as_deref());
    let input = VerificationInput::read(
        &arguments.file,
        disclosure,
        evidence,
        arguments.log.inclusion.as_deref(),
    )?;
    let revoked_keys = if arguments.accept_signed_before_revocation {
        RevokedKeys::AcceptSignedBefore
    } else {
        RevokedKeys::Refuse
    };
    let attestation = signed::verify_with(&input.attestation, &issuers, revoked_keys)?;
    let body = &attestation.body;
    if let Some(expected) = &arguments.expect_proof_hash
        && !expected.trim().eq_ignore_ascii_case(&attestation.proof_hash)
    {
        return Err(VerifyError::ProofHash(attestation.proof_hash));
    }
    let disclosure = input.disclosure.as_deref().map(|bytes| read_disclosure(bytes, &attestation));
    let disclosure = disclosure.transpose()?;
    let stated = input.check_subject(body)?;
    let salt = check_session(arguments.session.as_deref(), stated, body)?;
    let issuer = Issuer::find(&issuers, &body.issuer);
    let checked = arguments.checked_properties();
    let mut shown = Verified {
        disclosure: disclosure.as_ref(),
        found: None,
        logged: None,
        subject: input.subject.as_ref(),
        issuer: issuer.as_ref(),
        checked: &checked,
        transcript: arguments.show_transcript,
    };
    *report = Some(report::report(&attestation, &shown));
    arguments.expected.check(body, salt.as_ref())?;
    if let Some(max_age) = arguments.max_age {
        check_age(max_age, &attestation)?;
    }
    shown.logged = arguments.log.check(&attestation, shown.issuer, input.inclusion.as_deref())?;
    let files = input.evidence.as_deref().zip(arguments.roots.as_deref());
    shown.found =
        files.map(|files| examine_evidence(files, &attestation, shown.disclosure)).transpose()?;
    *report = Some(report::report(&attestation, &shown));
    let default = arguments.default_level(input.subject.is_some());
    arguments.expected.check_level(shown.level(), default)?;
    Ok(arguments.expected.check_required_fields(|field| shown.is_known(body, field))?)
}

impl VerifyArguments {
    /// Returns the level that is required without --level and --mode. The holder of an attestation
    /// can omit its evidence, so the evidence is required by everything that shows that the result
    /// is relied upon: a portable file, which is complete, roots, and each expectation except the
    /// hash. Other separate files are verified as far as possible.
    fn default_level(&self, is_portable: bool) -> Level {
        let expects =
            self.checked_properties().iter().any(|name| !matches!(*name, "proofHash" | "level"));
        if is_portable || expects || self.roots.is_some() {
            Level::Evidence
        } else {
            Level::Signature
        }
    }

    /// Returns the names of all checked properties, as the exit codes name them.
    fn checked_properties(&self) -> Vec<&'static str> {
        let files = [
            (self.expect_proof_hash.is_some(), "proofHash"),
            (self.session.is_some(), "session"),
            (self.max_age.is_some(), "age"),
        ];
        let files = files.into_iter().filter_map(|(given, name)| given.then_some(name));
        files.chain(self.expected.given()).chain(self.log.given()).collect()
    }
}

fn read_issuers(files: &[PathBuf]) -> Result<Vec<Issuer>, VerifyError> {
    if files.len() > MAX_KEY_FILES {
        return Err(VerifyError::File(format!("more than {MAX_KEY_FILES} lists of keys")));
    }
    let mut issuers = vec![];
    for file in files {
        let listed = parse_trust_list(&read(file, MAX_TRUST_LIST_BYTES)?);
        issuers.extend(listed.map_err(|error| {
            VerifyError::File(format!("{} is not a valid list of keys: {error}", file.display()))
        })?);
    }
    Ok(issuers)
}

/// Checks that the attestation belongs to the expected session, given by its identifier or as a
/// file. Returns the salt of the attestation's names if it is known. A portable attestation carries
/// one.
fn check_session(
    session: Option<&Path>,
    stated: Option<[u8; 32]>,
    body: &Body,
) -> Result<Option<[u8; 32]>, VerifyError> {
    let Some(session) = session else { return Ok(stated) };
    let id = session.to_str().and_then(|text| Uuid::try_parse(text).ok());
    let (id, salt) = match (id, stated) {
        (Some(id), Some(salt)) => (id, salt),
        (Some(_), None) => return Err(VerifyError::File(NO_SALT.to_owned())),
        (None, _) => read_session(session)?,
    };
    let name = session_hash(&salt, id.as_bytes());
    if name == body.session { Ok(Some(salt)) } else { Err(VerifyError::Session) }
}

fn read_session(file: &Path) -> Result<(Uuid, [u8; 32]), VerifyError> {
    let session: SessionFile = serde_json::from_slice(&read(file, MAX_SESSION_BYTES)?)
        .map_err(|error| VerifyError::File(format!("{}: {error}", file.display())))?;
    let salt = signed::unhex(&session.salt).and_then(|salt| salt.try_into().ok());
    let salt = salt.ok_or_else(|| VerifyError::File(format!("{}: bad salt", file.display())))?;
    Ok((session.session_id, salt))
}

fn check_age(max_age: Duration, attestation: &Attestation) -> Result<(), VerifyError> {
    let signed = i64::try_from(attestation.body.time.signed / 1000).unwrap_or(i64::MAX);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(signed);
    let max_age = i64::try_from(max_age.as_secs()).unwrap_or(i64::MAX);
    if (-MAX_CLOCK_SKEW_SECONDS..=max_age).contains(&age) {
        Ok(())
    } else {
        Err(VerifyError::Age(age))
    }
}

fn read_disclosure(bytes: &[u8], attestation: &Attestation) -> Result<Disclosure, VerifyError> {
    let disclosure = Disclosure::read(bytes)?;
    disclosure.verify(&attestation.body)?;
    Ok(disclosure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_a_unit() {
        assert_eq!(parse_age("90m"), Ok(Duration::from_secs(5400)));
        for text in ["", "h", "1", "-1h", "1.5h", "1w", "1 h", "é", "999999999999999999999d"] {
            assert!(parse_age(text).is_err(), "{text}");
        }
        assert!(parse_age(&format!("{}d", u64::MAX)).is_err());
    }
}
