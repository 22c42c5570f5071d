//! Attestations as they travel: the body's bytes and a signature (Ed25519, RFC 8032) over them.

use std::fmt::Write as _;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use minicbor::{Decode, Encode};
use serde::Deserialize;

use crate::{
    body::{Body, ED25519, VERSION},
    tls::flight::sha256,
};

const SIGNED: &[u8] = b"avouch/zktls-attestation/v1\0";
const KEY: &[u8] = b"avouch/attestation-key/v1\0";
/// The longest attestation.
pub const LONGEST: usize = 256 * 1024;
const MOST_ISSUERS: usize = 1000;

/// The bytes of a body with their signature.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
struct Envelope {
    #[cbor(n(0), with = "minicbor::bytes")]
    body: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    signature: [u8; 64],
}

/// An attestation whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    pub body: Body,
    /// SHA-256 of exactly what is signed, in lower case: 64 digits.
    pub proof_hash: String,
}

/// A key that attestations may be signed with, and when.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Issuer {
    /// Of whom, for people.
    pub name: String,
    /// 32 bytes in lower-case hexadecimal.
    pub public_key: String,
    /// Milliseconds since 1970.
    pub valid_from: u64,
    pub valid_to: u64,
    #[serde(default)]
    pub revoked_at: Option<u64>,
}

/// Why an attestation is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAttestation {
    #[error("it is longer than {LONGEST} bytes")]
    Long,
    #[error("it cannot be read: {0}")]
    Form(String),
    #[error("it is not in the one form that it can have")]
    NotCanonical,
    #[error("it is of version {0}, signed with algorithm {1}; neither is known here")]
    Unknown(u8, u8),
    #[error("its key is none of those that are believed")]
    Issuer,
    #[error("its key was not valid when it was signed")]
    NotValid,
    #[error("its key was revoked")]
    Revoked,
    #[error("its signature is wrong")]
    Signature,
}

/// The name of a key.
#[must_use]
pub fn key_id(public_key: &[u8; 32]) -> [u8; 32] {
    sha256(&[KEY, public_key].concat())
}

/// Signs a body.
///
/// # Errors
/// Where it cannot be written, which no body of a finite size is.
pub fn sign(body: &Body, key: &SigningKey) -> Result<Vec<u8>, BadAttestation> {
    let body = write(body)?;
    let signature = key.sign(&signed_part(&body)).to_bytes();
    write(&Envelope { body, signature })
}

/// Reads an attestation and verifies its signature with one of these keys.
///
/// # Errors
/// The first check that fails.
pub fn verify(bytes: &[u8], issuers: &[Issuer]) -> Result<Attestation, BadAttestation> {
    if bytes.len() > LONGEST {
        return Err(BadAttestation::Long);
    }
    let envelope: Envelope = read(bytes)?;
    let body: Body = read(&envelope.body)?;
    if (body.version, body.algorithm) != (VERSION, ED25519) {
        return Err(BadAttestation::Unknown(body.version, body.algorithm));
    }
    let known = issuers.iter().take(MOST_ISSUERS).find_map(|issuer| {
        let key = issuer.key().filter(|key| key_id(key) == body.issuer)?;
        Some((issuer, key))
    });
    let (issuer, key) = known.ok_or(BadAttestation::Issuer)?;
    let signed = body.time.signed;
    if !(issuer.valid_from..issuer.valid_to).contains(&signed) {
        return Err(BadAttestation::NotValid);
    }
    // A key that is stolen signs whatever time one likes: what it signed is worth nothing, early or
    // late.
    if issuer.revoked_at.is_some() {
        return Err(BadAttestation::Revoked);
    }
    let message = signed_part(&envelope.body);
    let key = VerifyingKey::from_bytes(&key).map_err(|_| BadAttestation::Signature)?;
    key.verify_strict(&message, &Signature::from_bytes(&envelope.signature))
        .map_err(|_| BadAttestation::Signature)?;
    Ok(Attestation { body, proof_hash: hex(&sha256(&message)) })
}

/// Reads an attestation without asking who signed it: its body, and the bytes of its
/// [`Attestation::proof_hash`]. For whoever wrote it.
///
/// # Errors
/// Where it is none.
pub fn unverified(bytes: &[u8]) -> Result<(Body, [u8; 32]), BadAttestation> {
    let envelope: Envelope = read(bytes)?;
    Ok((read(&envelope.body)?, sha256(&signed_part(&envelope.body))))
}

impl Issuer {
    /// Its bytes; none where they are not told as they have to be.
    #[must_use]
    pub fn key(&self) -> Option<[u8; 32]> {
        unhex(&self.public_key)?.try_into().ok()
    }
}

fn signed_part(body: &[u8]) -> Vec<u8> {
    [SIGNED, body].concat()
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of lower-case hexadecimal; none where it is not that.
#[must_use]
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

/// Writes a value in its one form (RFC 8949, section 4.2).
///
/// # Errors
/// Where it cannot be written; each of this crate's can.
pub fn write<T: Encode<()>>(value: &T) -> Result<Vec<u8>, BadAttestation> {
    minicbor::to_vec(value).map_err(|error| BadAttestation::Form(error.to_string()))
}

/// Reads what has one form alone: written again, it is the same bytes.
///
/// # Errors
/// Where it is none, or not in that form.
pub fn read<T: for<'b> Decode<'b, ()> + Encode<()>>(bytes: &[u8]) -> Result<T, BadAttestation> {
    let value: T =
        minicbor::decode(bytes).map_err(|error| BadAttestation::Form(error.to_string()))?;
    if write(&value)? == bytes { Ok(value) } else { Err(BadAttestation::NotCanonical) }
}
