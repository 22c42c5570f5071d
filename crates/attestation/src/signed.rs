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
/// The most listings of keys that one verification reads.
pub const MAX_ISSUERS: usize = 1000;

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
    /// Milliseconds since 1970. It may sign from then on.
    pub valid_from: u64,
    /// Milliseconds since 1970. It may not sign any more from then on.
    pub valid_to: u64,
    /// Milliseconds since 1970; none where it was not revoked.
    #[serde(default)]
    pub revoked_at: Option<u64>,
}

/// What is done with an attestation whose key was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokedKeys {
    /// It is refused, whenever it says that it was signed: whoever stole the key can write any time.
    Refuse,
    /// It is accepted if it says that it was signed before the revocation. That time is the word of
    /// whoever held the key: for keys that were withdrawn without having been stolen.
    AcceptSignedBefore,
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
    #[error("more than {MAX_ISSUERS} keys are listed")]
    TooManyIssuers,
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

/// Reads an attestation and verifies its signature with one of these keys. One that was signed
/// with a revoked key is refused.
///
/// # Errors
/// The first check that fails.
pub fn verify(bytes: &[u8], issuers: &[Issuer]) -> Result<Attestation, BadAttestation> {
    verify_with(bytes, issuers, RevokedKeys::Refuse)
}

/// [`verify`], with a choice for what a revoked key signed.
///
/// # Errors
/// The first check that fails.
pub fn verify_with(
    bytes: &[u8],
    issuers: &[Issuer],
    revoked_keys: RevokedKeys,
) -> Result<Attestation, BadAttestation> {
    if bytes.len() > LONGEST {
        return Err(BadAttestation::Long);
    }
    let envelope: Envelope = read(bytes)?;
    let body = read_body(&envelope.body)?;
    if (body.version, body.algorithm) != (VERSION, ED25519) {
        return Err(BadAttestation::Unknown(body.version, body.algorithm));
    }
    if issuers.len() > MAX_ISSUERS {
        return Err(BadAttestation::TooManyIssuers);
    }
    let issuer = Issuer::find(issuers, &body.issuer).ok_or(BadAttestation::Issuer)?;
    let key = issuer.key().ok_or(BadAttestation::Issuer)?;
    let signed = body.time.signed;
    let refused = |revoked_at| match revoked_keys {
        RevokedKeys::Refuse => true,
        RevokedKeys::AcceptSignedBefore => signed >= revoked_at,
    };
    if issuer.revoked_at.is_some_and(refused) {
        return Err(BadAttestation::Revoked);
    }
    if !(issuer.valid_from..issuer.valid_to).contains(&signed) {
        return Err(BadAttestation::NotValid);
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
    Ok((read_body(&envelope.body)?, sha256(&signed_part(&envelope.body))))
}

/// Reads a body. Those of other versions have other fields, and are told by what all of them begin
/// with: version, identifier, key and algorithm.
fn read_body(bytes: &[u8]) -> Result<Body, BadAttestation> {
    let mut decoder = minicbor::Decoder::new(bytes);
    let mut begin = || {
        decoder.array()?;
        let version = decoder.u8()?;
        decoder.bytes()?;
        decoder.bytes()?;
        Ok::<_, minicbor::decode::Error>((version, decoder.u8()?))
    };
    match begin() {
        Ok((version, algorithm)) if version != VERSION => {
            Err(BadAttestation::Unknown(version, algorithm))
        }
        Ok(_) | Err(_) => read(bytes),
    }
}

impl Issuer {
    /// Its bytes; none where they are not told as they have to be.
    #[must_use]
    pub fn key(&self) -> Option<[u8; 32]> {
        unhex(&self.public_key)?.try_into().ok()
    }

    /// What all listings of a key say together, by its [`key_id`]: valid while each of them says so,
    /// and revoked at the earliest time that any of them names. Its name is that of the first.
    /// None where the key is not listed.
    #[must_use]
    pub fn find(issuers: &[Self], id: &[u8; 32]) -> Option<Self> {
        let of_key = |issuer: &&Self| issuer.key().is_some_and(|key| key_id(&key) == *id);
        issuers.iter().filter(of_key).cloned().reduce(|all, other| Self {
            valid_from: all.valid_from.max(other.valid_from),
            valid_to: all.valid_to.min(other.valid_to),
            revoked_at: all.revoked_at.into_iter().chain(other.revoked_at).min(),
            ..all
        })
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
