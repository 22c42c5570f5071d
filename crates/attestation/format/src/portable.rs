//! The portable form of an attestation: one file for verifiers elsewhere. Verifiers choose only the
//! keys and the certificates that they trust.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};
use serde_json::Value;

use crate::{
    attest::{Disclosure, DisclosureError, MAX_DISCLOSURE_BYTES},
    body::Body,
    commitment::OpeningKind,
    descriptor::Descriptor,
    evidence::{self, Evidence},
    http::{RedactedBytes, request, selective},
    json,
    signed::{self, AttestationError},
    tlog::{LogProof, MAX_PROOF_BYTES, TlogError},
    zktls::RevealedServerData,
};

/// The first member of the file: its format and version.
pub const FORMAT: &str = "avouch/portable-attestation/v1";
/// Maximum length of the file: its parts, each of maximum length, and their framing.
pub const MAX_PORTABLE_BYTES: usize = signed::MAX_ATTESTATION_BYTES
    + MAX_DISCLOSURE_BYTES
    + evidence::MAX_EVIDENCE_BYTES
    + MAX_PROOF_BYTES
    + 1024;

/// Response headers that reveal nothing about the applicant: they describe the connection, the
/// format of the body, or restrictions for browsers.
const NEUTRAL_HEADERS: &[&str] = &[
    "cache-control",
    "connection",
    "content-length",
    "content-security-policy",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "date",
    "expires",
    "keep-alive",
    "permissions-policy",
    "pragma",
    "referrer-policy",
    "server",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
    "x-frame-options",
    "x-xss-protection",
];

/// An attestation with its disclosure and, if that reveals declared data only, its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestationBundle {
    #[n(0)]
    format: String,
    #[n(1)]
    pub subject: Subject,
    /// As [`signed::verify`] reads it.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub attestation: Vec<u8>,
    /// Opens the claims and nothing else, as [`Disclosure::read`] reads it.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub disclosure: Vec<u8>,
    /// As [`Evidence::read`] reads it. `None` if it would reveal more than the claims.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub evidence: Option<Vec<u8>>,
    /// As [`LogProof::read`] reads it. `None` for an attestation that is in no log.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub inclusion: Option<Vec<u8>>,
}

/// The subject that the file states. The signed body contains [`crate::attest::session_hash`] and
/// [`crate::attest::partner_hash`] of these values.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Subject {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub session: [u8; 16],
    /// The identifier of the partner's team.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub partner: [u8; 16],
    #[cbor(n(2), with = "minicbor::bytes")]
    pub salt: [u8; 32],
}

/// Why a portable attestation cannot be created or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortableError {
    #[error("it is longer than {MAX_PORTABLE_BYTES} bytes")]
    TooLong,
    #[error("failed to decode it: {0}")]
    Malformed(#[from] AttestationError),
    #[error("it does not have the format `{FORMAT}`")]
    UnknownFormat,
    #[error("its disclosure is refused: {0}")]
    Disclosure(#[from] DisclosureError),
    #[error("its inclusion proof is refused: {0}")]
    Inclusion(#[from] TlogError),
}

impl AttestationBundle {
    /// Creates a portable attestation from its parts, without data that the applicant did not agree
    /// to share: of the disclosure only the claims stay, and the evidence stays only if it reveals
    /// nothing else ([`shows_declared_only`]). Does not verify signature and proof.
    ///
    /// # Errors
    /// The attestation or its disclosure is malformed, or they do not belong together.
    pub fn from_parts(
        subject: Subject,
        attestation: Vec<u8>,
        disclosure: &[u8],
        evidence: Option<Vec<u8>>,
        inclusion: Option<Vec<u8>>,
    ) -> Result<Self, PortableError> {
        let (body, _) = signed::decode_unverified(&attestation)?;
        let mut disclosure = Disclosure::read(disclosure)?;
        disclosure.verify(&body)?;
        inclusion.as_deref().map(LogProof::read).transpose()?;
        let evidence =
            evidence.filter(|evidence| shows_declared_only(evidence, &disclosure, &body));
        disclosure.openings.retain(|opening| opening.kind == OpeningKind::Claim);
        let disclosure = disclosure.write()?;
        let format = FORMAT.to_owned();
        Ok(Self { format, subject, attestation, disclosure, evidence, inclusion })
    }

    /// Returns whether a file starts like a portable attestation; it may still be malformed.
    #[must_use]
    pub fn has_format_prefix(bytes: &[u8]) -> bool {
        // An array of four to six elements (RFC 8949, section 3), because absent elements at the
        // end are not encoded; the first one is a text of 24 to 255 bytes.
        let text = match bytes {
            [0x84..=0x86, 0x78, _, text @ ..] => Some(text),
            _ => None,
        };
        text.is_some_and(|text| text.starts_with(FORMAT.as_bytes()))
    }

    /// Decodes a portable attestation; its parts are not verified.
    ///
    /// # Errors
    /// It is too long, of another format, or not in deterministic CBOR.
    pub fn read(bytes: &[u8]) -> Result<Self, PortableError> {
        if bytes.len() > MAX_PORTABLE_BYTES {
            return Err(PortableError::TooLong);
        }
        let read: Self = signed::read(bytes)?;
        if read.format == FORMAT { Ok(read) } else { Err(PortableError::UnknownFormat) }
    }

    /// # Errors
    /// Encoding fails, which does not happen for finite values.
    pub fn write(&self) -> Result<Vec<u8>, PortableError> {
        Ok(signed::write(self)?)
    }
}

/// Returns whether evidence reveals declared data only: of the request only headers whose values
/// the descriptor fixes, of the response only the claims, with zeros for hidden bytes.
fn shows_declared_only(evidence: &[u8], disclosure: &Disclosure, body: &Body) -> bool {
    let Ok(Evidence { reveal, descriptor, .. }) = Evidence::read(evidence) else { return false };
    let Ok(descriptor) = serde_json::from_str::<Descriptor>(&descriptor) else { return false };
    if descriptor.reference() != body.descriptor || reveal.mode().number() != body.mode {
        return false;
    }
    let request = RedactedBytes { bytes: &reveal.request_bytes, hidden: &reveal.hidden };
    let fixed = request::read(request, &descriptor).is_ok_and(|read| read.chosen.is_empty());
    let response = match &reveal.server {
        RevealedServerData::TrafficSecret(_) => shows_claims_only(disclosure, body),
        RevealedServerData::Proved(revealed) => {
            let response =
                RedactedBytes { bytes: &revealed.response_bytes, hidden: &revealed.hidden };
            selective::read(response, &descriptor).is_ok() && hidden_bytes_are_zero(response)
        }
    };
    fixed && hidden_bytes_are_zero(request) && response
}

/// Returns whether all hidden bytes are zeros.
fn hidden_bytes_are_zero(seen: RedactedBytes<'_>) -> bool {
    let mut hidden = seen.hidden.iter().map(|hidden| seen.bytes.get(hidden.clone()));
    hidden.all(|bytes| bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)))
}

/// Returns whether the disclosed response has no value except the claims, and no header except
/// neutral ones. An incompletely disclosed response counts as having more.
fn shows_claims_only(disclosure: &Disclosure, body: &Body) -> bool {
    let of = |kind: OpeningKind| {
        let openings = disclosure.openings.iter().filter(move |opening| opening.kind == kind);
        openings.map(|it| (it.index, it.value.as_slice())).collect::<BTreeMap<_, _>>()
    };
    let (lines, parts) = (of(OpeningKind::ResponseLine), of(OpeningKind::BodyPart));
    let opened = lines.keys().chain(parts.keys()).collect::<BTreeSet<_>>();
    if opened.len() != disclosure.response.len() {
        return false;
    }
    // The first line is the status line.
    let neutral = lines.values().skip(1).all(|line| is_neutral(line));
    let text = parts.into_values().flatten().copied().collect::<Vec<_>>();
    let claims = body.claims.iter().map(|claim| claim.pointer.as_str()).collect();
    neutral && json::read(&text).is_ok_and(|value| all_values_claimed(&value, "", &claims))
}

fn is_neutral(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    NEUTRAL_HEADERS.iter().any(|neutral| name.eq_ignore_ascii_case(neutral.as_bytes()))
}

/// Returns whether each value within this one, which is at `pointer` (RFC 6901), is a claim. An
/// empty object or array is a value that no claim covers.
fn all_values_claimed(value: &Value, pointer: &str, claims: &BTreeSet<&str>) -> bool {
    match value {
        Value::Object(members) if !members.is_empty() => members.iter().all(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            all_values_claimed(value, &format!("{pointer}/{name}"), claims)
        }),
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .enumerate()
            .all(|(index, item)| all_values_claimed(item, &format!("{pointer}/{index}"), claims)),
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => claims.contains(pointer),
    }
}
