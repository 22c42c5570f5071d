//! Encoded attestations: the body's bytes and a signature (Ed25519, RFC 8032) over them.

use std::fmt::Write as _;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use minicbor::{Decode, Encode};
use serde::Deserialize;

use crate::{
    body::{Body, ED25519, VERSION},
    tls::flight::sha256,
};

const SIGNATURE_LABEL: &[u8] = b"avouch/zktls-attestation/v1\0";
const KEY_ID_LABEL: &[u8] = b"avouch/attestation-key/v1\0";
/// Maximum length of an attestation.
pub const MAX_ATTESTATION_BYTES: usize = 256 * 1024;
/// Maximum number of listed keys in one verification.
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

/// An attestation with a verified signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attestation {
    pub body: Body,
    /// SHA-256 of exactly the signed bytes, in lower case: 64 digits.
    pub proof_hash: String,
}

/// A key that may sign attestations, with its validity period.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Issuer {
    /// Name of the key's owner, for people.
    pub name: String,
    /// 32 bytes in lower-case hexadecimal.
    pub public_key: String,
    /// Start of the validity period, in milliseconds since 1970.
    pub valid_from: u64,
    /// End of the validity period (exclusive), in milliseconds since 1970.
    pub valid_to: u64,
    /// Milliseconds since 1970; `None` if the key is not revoked.
    #[serde(default)]
    pub revoked_at: Option<u64>,
}

/// Treatment of attestations whose key was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokedKeys {
    /// They are refused regardless of their stated signing time: a thief of the key can state any
    /// time.
    Refuse,
    /// They are accepted if they state a signing time before the revocation. Only the key's holder
    /// asserts that time: for keys that were withdrawn without having been stolen.
    AcceptSignedBefore,
}

/// Why an attestation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttestationError {
    #[error("it is longer than {MAX_ATTESTATION_BYTES} bytes")]
    TooLong,
    #[error("failed to decode it: {0}")]
    Malformed(String),
    #[error("it is not in deterministic CBOR")]
    NotCanonical,
    #[error("it has version {0} and signature algorithm {1}, which are not supported")]
    UnsupportedVersion(u8, u8),
    #[error("more than {MAX_ISSUERS} keys are listed")]
    TooManyIssuers,
    #[error("its key is not trusted")]
    Issuer,
    #[error("its key was not valid when it was signed")]
    NotValid,
    #[error("its key was revoked")]
    Revoked,
    #[error("its signature is invalid")]
    Signature,
}

/// Returns the identifier of a key.
#[must_use]
pub fn key_id(public_key: &[u8; 32]) -> [u8; 32] {
    sha256(&[KEY_ID_LABEL, public_key].concat())
}

/// Signs a body.
///
/// # Errors
/// Encoding fails, which does not happen for finite values.
pub fn sign(body: &Body, key: &SigningKey) -> Result<Vec<u8>, AttestationError> {
    let body = write(body)?;
    let signature = key.sign(&signed_message(&body)).to_bytes();
    write(&Envelope { body, signature })
}

/// Decodes an attestation and verifies its signature with one of these keys. Refuses revoked keys.
///
/// # Errors
/// The first check that fails.
pub fn verify(bytes: &[u8], issuers: &[Issuer]) -> Result<Attestation, AttestationError> {
    verify_with(bytes, issuers, RevokedKeys::Refuse)
}

/// Works like [`verify`], with a choice for revoked keys.
///
/// # Errors
/// The first check that fails.
pub fn verify_with(
    bytes: &[u8],
    issuers: &[Issuer],
    revoked_keys: RevokedKeys,
) -> Result<Attestation, AttestationError> {
    if bytes.len() > MAX_ATTESTATION_BYTES {
        return Err(AttestationError::TooLong);
    }
    let envelope: Envelope = read(bytes)?;
    let body = read_body(&envelope.body)?;
    if (body.version, body.algorithm) != (VERSION, ED25519) {
        return Err(AttestationError::UnsupportedVersion(body.version, body.algorithm));
    }
    if issuers.len() > MAX_ISSUERS {
        return Err(AttestationError::TooManyIssuers);
    }
    let issuer = Issuer::find(issuers, &body.issuer).ok_or(AttestationError::Issuer)?;
    let key = issuer.key().ok_or(AttestationError::Issuer)?;
    let signed = body.time.signed;
    let refused = |revoked_at| match revoked_keys {
        RevokedKeys::Refuse => true,
        RevokedKeys::AcceptSignedBefore => signed >= revoked_at,
    };
    if issuer.revoked_at.is_some_and(refused) {
        return Err(AttestationError::Revoked);
    }
    if !(issuer.valid_from..issuer.valid_to).contains(&signed) {
        return Err(AttestationError::NotValid);
    }
    let message = signed_message(&envelope.body);
    let key = VerifyingKey::from_bytes(&key).map_err(|_| AttestationError::Signature)?;
    key.verify_strict(&message, &Signature::from_bytes(&envelope.signature))
        .map_err(|_| AttestationError::Signature)?;
    Ok(Attestation { body, proof_hash: hex(&sha256(&message)) })
}

/// Decodes an attestation without verifying its signature. Returns its body and the bytes of its
/// [`Attestation::proof_hash`]. For the program that wrote it.
///
/// # Errors
/// It is malformed.
pub fn decode_unverified(bytes: &[u8]) -> Result<(Body, [u8; 32]), AttestationError> {
    let envelope: Envelope = read(bytes)?;
    Ok((read_body(&envelope.body)?, sha256(&signed_message(&envelope.body))))
}

/// Decodes a body. Bodies of other versions have other fields and are recognized by their common
/// prefix: version, identifier, key and algorithm.
fn read_body(bytes: &[u8]) -> Result<Body, AttestationError> {
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
            Err(AttestationError::UnsupportedVersion(version, algorithm))
        }
        Ok(_) | Err(_) => read(bytes),
    }
}

impl Issuer {
    /// Returns its bytes, or `None` if they are malformed.
    #[must_use]
    pub fn key(&self) -> Option<[u8; 32]> {
        unhex(&self.public_key)?.try_into().ok()
    }

    /// Merges all listed entries of a key, by its [`key_id`]: it is valid while all of them are
    /// valid, and revoked at the earliest time that one of them states. The name is that of the
    /// first. Returns `None` if the key is not listed.
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

fn signed_message(body: &[u8]) -> Vec<u8> {
    [SIGNATURE_LABEL, body].concat()
}

/// Encodes bytes as lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes lower-case hexadecimal, or returns `None` for any other text.
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

/// Encodes a value in deterministic CBOR (RFC 8949, section 4.2).
///
/// # Errors
/// Encoding fails, which does not happen for the types of this crate.
pub fn write<T: Encode<()>>(value: &T) -> Result<Vec<u8>, AttestationError> {
    minicbor::to_vec(value).map_err(|error| AttestationError::Malformed(error.to_string()))
}

/// Decodes deterministic CBOR: encoding the value again must give the same bytes.
///
/// # Errors
/// It is malformed, or not in deterministic CBOR.
pub fn read<T: for<'b> Decode<'b, ()> + Encode<()>>(bytes: &[u8]) -> Result<T, AttestationError> {
    let value: T =
        minicbor::decode(bytes).map_err(|error| AttestationError::Malformed(error.to_string()))?;
    if write(&value)? == bytes { Ok(value) } else { Err(AttestationError::NotCanonical) }
}
