//! The verifier's expectations of an attestation: their options, and the comparison with an
//! attestation.
//!
//! **Invariant:** an expectation never makes an attestation acceptable that would be refused
//! without it, except `--mode` and `--level`, which state how much verification is required.

use std::{fmt, path::PathBuf, str::FromStr};

use attestation::{
    attest::partner_hash,
    body::{Body, MAX_CHALLENGE_BYTES},
    descriptor::{Descriptor, RevealMode},
    signed::{hex, unhex},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use clap::{Args, ValueEnum};
use uuid::Uuid;

use crate::{
    error::{ExpectationError, VerifyError},
    read,
};

const HTTPS_PORT: u16 = 443;
const MAX_DESCRIPTOR_BYTES: usize = 64 * 1024;
const NO_SALT: &str = "--partner needs --session, or a portable attestation";

/// How much of an attestation is verified, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// The attestor's signature
    Signature,
    /// Also the values, which match the attestor's commitments
    Disclosure,
    /// Also the recorded connection and the proof, which are examined again
    Evidence,
}

impl Level {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Disclosure => "disclosure",
            Self::Evidence => "evidence",
        }
    }
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Expectations")]
pub(crate) struct Expectations {
    /// The server's DNS name; port 443 if none is given
    #[arg(long, value_name = "NAME[:PORT]")]
    host: Option<Host>,
    /// The platform's number in the descriptor
    #[arg(long, value_name = "NUMBER")]
    platform: Option<u32>,
    /// The descriptor: its SHA-256 in hexadecimal, or the JSON file itself
    #[arg(long, value_name = "HASH|FILE")]
    descriptor: Option<DescriptorRef>,
    /// The mode; zktls-full or zktls-request unless it or a lower --level is given
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    mode: Option<RevealMode>,
    /// Required level of verification: evidence, unless this option or --mode full-reveal is given.
    /// For separate files without --roots and without an expectation other than the hash, the level
    /// of the named files
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// The partner's attestationChallenge: base64url without padding, 1 to 64 bytes
    #[arg(long, value_name = "BASE64URL")]
    challenge: Option<ExpectedChallenge>,
    /// The partner's team identifier; needs --session or a portable attestation
    #[arg(long, value_name = "TEAM_ID")]
    partner: Option<Uuid>,
    /// A field that must be attested, with its value unless --level signature is given; may be
    /// repeated
    #[arg(long, value_name = "NAME", value_parser = parse_field)]
    require_field: Vec<String>,
    /// Maximum number of connections that the attestor opened for this attestation
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempt: Option<u32>,
}

impl Expectations {
    /// Returns the names of the given expectations, as the report lists them.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            (self.host.is_some(), "host"),
            (self.platform.is_some(), "platform"),
            (self.descriptor.is_some(), "descriptor"),
            (self.mode.is_some(), "mode"),
            (self.level.is_some(), "level"),
            (self.challenge.is_some(), "challenge"),
            (self.partner.is_some(), "partner"),
            (!self.require_field.is_empty(), "field"),
            (self.max_attempt.is_some(), "attempt"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
    }

    /// Checks an attestation's body. `salt` is the salt of the session's names, if it is known.
    pub(crate) fn check(&self, body: &Body, salt: Option<&[u8; 32]>) -> Result<(), VerifyError> {
        if self.partner.is_some() && salt.is_none() {
            return Err(VerifyError::File(NO_SALT.to_owned()));
        }
        let server = &body.server;
        if let Some(Host(name, port)) = &self.host
            && (name, *port) != (&server.name, server.port)
        {
            return Err(ExpectationError::Host(server.name.clone(), server.port).into());
        }
        let descriptor = &body.descriptor;
        if self.platform.is_some_and(|platform| platform != descriptor.platform) {
            return Err(ExpectationError::Platform(descriptor.platform).into());
        }
        let expected = self.descriptor.as_ref().map(DescriptorRef::sha256).transpose()?;
        if expected.is_some_and(|expected| expected != descriptor.sha256) {
            return Err(ExpectationError::Descriptor(hex(&descriptor.sha256)).into());
        }
        if !self.allows_mode(body.mode) {
            return Err(ExpectationError::Mode(mode_name(body.mode)).into());
        }
        if let Some(ExpectedChallenge(expected)) = &self.challenge
            && *expected != body.challenge
        {
            let has = if body.challenge.is_empty() { "no challenge" } else { "another challenge" };
            return Err(ExpectationError::Challenge(has).into());
        }
        let partner =
            self.partner.zip(salt).map(|(team, salt)| partner_hash(salt, team.as_bytes()));
        if partner.is_some_and(|partner| partner != body.partner) {
            return Err(ExpectationError::Partner.into());
        }
        let attested = |field: &&String| body.claims.iter().any(|claim| claim.field == **field);
        if let Some(missing) = self.require_field.iter().find(|field| !attested(field)) {
            return Err(ExpectationError::NotAttested(missing.clone()).into());
        }
        if let Some(max) = self.max_attempt.filter(|max| body.attempt > *max) {
            return Err(ExpectationError::Attempt(body.attempt, max).into());
        }
        Ok(())
    }

    /// Checks that the reached level is sufficient: for --level, for --mode full-reveal, which has
    /// no evidence, or else for the default.
    pub(crate) fn check_level(
        &self,
        reached: Level,
        default: Level,
    ) -> Result<(), ExpectationError> {
        let opens_all = self.mode == Some(RevealMode::FullReveal);
        let default = if opens_all { Level::Signature } else { default };
        let required = self.level.unwrap_or(default);
        if reached < required {
            return Err(ExpectationError::Level(reached.name(), required.name()));
        }
        Ok(())
    }

    /// Checks that each required field has a value, unless --level signature is given explicitly:
    /// the signature covers only a commitment to the value.
    pub(crate) fn check_required_fields(
        &self,
        is_opened: impl Fn(&str) -> bool,
    ) -> Result<(), ExpectationError> {
        let needed = self.require_field.iter().filter(|_| self.level != Some(Level::Signature));
        match needed.into_iter().find(|field| !is_opened(field)) {
            Some(field) => Err(ExpectationError::NotDisclosed(field.clone())),
            None => Ok(()),
        }
    }

    fn allows_mode(&self, mode: u8) -> bool {
        let known = MODES.map(RevealMode::number).contains(&mode);
        match self.mode {
            Some(required) => required.number() == mode,
            None if self.level.is_some_and(|level| level < Level::Evidence) => known,
            None => known && mode != RevealMode::FullReveal.number(),
        }
    }
}

const MODES: [RevealMode; 3] =
    [RevealMode::FullReveal, RevealMode::ZktlsRequest, RevealMode::ZktlsFull];

/// Returns the name of a mode, the same everywhere.
pub(crate) fn mode_name(number: u8) -> &'static str {
    match number {
        number if number == RevealMode::FullReveal.number() => "full-reveal",
        number if number == RevealMode::ZktlsRequest.number() => "zktls-request",
        number if number == RevealMode::ZktlsFull.number() => "zktls-full",
        _ => "unknown",
    }
}

fn parse_mode(text: &str) -> Result<RevealMode, String> {
    let found = MODES.into_iter().find(|mode| mode_name(mode.number()) == text);
    found.ok_or_else(|| "it must be zktls-full, zktls-request or full-reveal".to_owned())
}

/// The limits are those of descriptors.
fn parse_field(text: &str) -> Result<String, String> {
    let is_valid = (1..=100).contains(&text.len());
    is_valid.then(|| text.to_owned()).ok_or_else(|| "it must have 1 to 100 bytes".to_owned())
}

/// A DNS name in lower case and a port.
#[derive(Debug, Clone)]
struct Host(String, u16);

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || "it must be a DNS name such as platform.example or platform.example:443";
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)),
            None => (text, Some(HTTPS_PORT)),
        };
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let is_valid = name.len() <= 253 && name.split('.').all(label);
        let port = port.filter(|_| is_valid).ok_or_else(invalid)?;
        Ok(Self(name.to_ascii_lowercase(), port))
    }
}

/// A descriptor, by its hash or as a file.
#[derive(Debug, Clone)]
enum DescriptorRef {
    Hash([u8; 32]),
    File(PathBuf),
}

impl FromStr for DescriptorRef {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hash = unhex(&text.to_ascii_lowercase()).and_then(|hash| hash.try_into().ok());
        Ok(hash.map_or_else(|| Self::File(text.into()), Self::Hash))
    }
}

impl DescriptorRef {
    fn sha256(&self) -> Result<[u8; 32], VerifyError> {
        let path = match self {
            Self::Hash(hash) => return Ok(*hash),
            Self::File(path) => path,
        };
        let bad = |why: &dyn fmt::Display| {
            VerifyError::File(format!("{} is not a valid descriptor: {why}", path.display()))
        };
        let bytes = read(path, MAX_DESCRIPTOR_BYTES)?;
        if bytes.len() > MAX_DESCRIPTOR_BYTES {
            return Err(bad(&"it is too long"));
        }
        let descriptor: Descriptor = serde_json::from_slice(&bytes).map_err(|error| bad(&error))?;
        descriptor.check().map_err(|error| bad(&error))?;
        Ok(descriptor.sha256())
    }
}

/// Bytes that the partner chose.
#[derive(Debug, Clone)]
struct ExpectedChallenge(Vec<u8>);

impl FromStr for ExpectedChallenge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let is_valid = bytes.filter(|bytes| (1..=MAX_CHALLENGE_BYTES).contains(&bytes.len()));
        let invalid =
            || format!("it must be 1 to {MAX_CHALLENGE_BYTES} bytes as base64url without padding");
        is_valid.map(Self).ok_or_else(invalid)
    }
}
