//! Descriptors of what an attestor may attest: one request to one host, and the claimed values of
//! its response.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{body::DescriptorReference, http::is_token, tls::flight::sha256};

const MAX_TEXT_BYTES: usize = 2000;
const MAX_HEADERS: usize = 32;
const MAX_CLAIMS: usize = 32;

/// Header names that no descriptor may allow: they belong to the fixed prefix of every request,
/// determine its length, change the requested resource, or claim another origin.
const FORBIDDEN_HEADERS: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];
const FORBIDDEN_PREFIXES: &[&str] =
    &["if-", "x-forwarded-", "x-http-method", "x-method", "x-original-", "x-rewrite-"];

/// How much of a connection is revealed to the attestor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevealMode {
    /// Everything, including credentials. This is not zkTLS: nothing is hidden.
    FullReveal,
    /// Everything except the credentials in the request.
    ZktlsRequest,
    /// The declared parts: the request without credentials, and of the response its structure and
    /// the claimed values.
    ZktlsFull,
}

impl RevealMode {
    /// Returns the mode's number in an attestation.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::FullReveal => 0,
            Self::ZktlsRequest => 1,
            Self::ZktlsFull => 2,
        }
    }
}

/// One request that may be attested. It is identified by its hash, so verifiers need the same
/// descriptor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptor {
    pub platform: u32,
    pub version: u32,
    /// Lower case, as in the certificate; the port is 443.
    pub host: String,
    /// Exact path and query: `/api/me?fields=id`.
    pub target: String,
    /// Names of the headers that the request may have, in lower case.
    pub headers: Vec<String>,
    /// Headers whose values are hidden from the attestor.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Fixed values of other headers, by name: such a header must be in the request with exactly
    /// this value. The prover chooses the values of headers that are neither hidden nor fixed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Of the response, without parameters: `application/json`.
    pub content_type: String,
    /// Exactly one mode. A prover cannot choose, and no failure leads to a mode that reveals more.
    pub modes: Vec<RevealMode>,
    pub claims: Vec<ClaimDescriptor>,
}

/// A value that is taken from the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimDescriptor {
    pub field: String,
    /// A JSON pointer (RFC 6901) to a string, number, boolean or null.
    pub pointer: String,
}

/// Why a descriptor is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    #[error("the host must be a DNS name in lower case")]
    Host,
    #[error(
        "the target must be a path with visible ASCII, without `//`, dot segments or their escapes"
    )]
    Target,
    #[error("header `{0}` cannot be allowed")]
    Header(String),
    #[error("hidden header `{0}` is not among the allowed ones")]
    Hidden(String),
    #[error("header `{0}` is hidden or not allowed, or its value is not visible ASCII")]
    Value(String),
    #[error("the content type must be application/json")]
    ContentType,
    #[error("claim `{0}` is empty or a duplicate, or its pointer is malformed")]
    Claim(String),
    #[error("there are too many headers or claims, or no claim")]
    Count,
    #[error("there must be exactly one mode")]
    Modes,
}

impl Descriptor {
    /// Returns its identifier: the hash of its JSON in the order of the fields above, without
    /// spaces.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        // Serializing a structure of texts and numbers cannot fail.
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the reference to it in an attestation.
    #[must_use]
    pub fn reference(&self) -> DescriptorReference {
        let (platform, version, sha256) = (self.platform, self.version, self.sha256());
        DescriptorReference { platform, version, sha256 }
    }

    /// Checks every rule that its types do not enforce.
    pub fn check(&self) -> Result<(), DescriptorError> {
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if self.host.len() > 253 || !self.host.contains('.') || !self.host.split('.').all(label) {
            return Err(DescriptorError::Host);
        }
        if !is_unambiguous_target(&self.target) {
            return Err(DescriptorError::Target);
        }
        let counts = [self.headers.len() <= MAX_HEADERS, self.claims.len() <= MAX_CLAIMS];
        if counts.contains(&false) || self.claims.is_empty() {
            return Err(DescriptorError::Count);
        }
        if self.modes.len() != 1 {
            return Err(DescriptorError::Modes);
        }
        for (at, name) in self.headers.iter().enumerate() {
            let is_plain = name.bytes().all(|b| is_token(b) && !b.is_ascii_uppercase());
            let forbidden = FORBIDDEN_HEADERS.contains(&name.as_str())
                || FORBIDDEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            let duplicate = self.headers.iter().take(at).any(|other| other == name);
            if name.is_empty() || name.len() > 64 || !is_plain || forbidden || duplicate {
                return Err(DescriptorError::Header(name.clone()));
            }
        }
        if let Some(name) = self.hidden.iter().find(|name| !self.headers.contains(name)) {
            return Err(DescriptorError::Hidden(name.clone()));
        }
        if let Some((name, _)) = self.values.iter().find(|(name, value)| {
            self.hidden.contains(name)
                || !self.headers.contains(name)
                || !is_unambiguous_value(value)
        }) {
            return Err(DescriptorError::Value(name.clone()));
        }
        if self.content_type != "application/json" {
            return Err(DescriptorError::ContentType);
        }
        for (at, ClaimDescriptor { field, pointer }) in self.claims.iter().enumerate() {
            let duplicate = self.claims.iter().take(at).any(|other| other.field == *field);
            let bounds = (1..=100).contains(&field.len()) && pointer.len() <= MAX_TEXT_BYTES;
            if !bounds || duplicate || !pointer.starts_with('/') {
                return Err(DescriptorError::Claim(field.clone()));
            }
        }
        Ok(())
    }
}

/// Returns whether all servers interpret a header's value in the same way: not empty, without
/// control characters, and without leading or trailing spaces, which do not count (RFC 9110,
/// section 5.5).
fn is_unambiguous_value(value: &str) -> bool {
    (1..=MAX_TEXT_BYTES).contains(&value.len())
        && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && value.trim_matches(' ') == value
}

/// Returns whether all servers interpret a target in the same way: no empty segment, no dot
/// segment, no escape for one, no segment parameters, no fragment.
fn is_unambiguous_target(target: &str) -> bool {
    let visible = target.bytes().all(|byte| byte.is_ascii_graphic());
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let Some(path) = path.strip_prefix('/') else { return false };
    let lower = path.to_ascii_lowercase();
    let escapes = ["%2e", "%2f", "%5c", "%00", "%25"].iter().any(|escape| lower.contains(escape));
    let mut segments = path.split('/').peekable();
    let is_plain = path.is_empty()
        || std::iter::from_fn(|| {
            segments.next().map(|segment| (segment, segments.peek().is_none()))
        })
        .all(|(segment, last)| (last || !segment.is_empty()) && !matches!(segment, "." | ".."));
    visible
        && is_plain
        && !escapes
        && !target.contains(['\\', ';', '#'])
        && target.len() <= MAX_TEXT_BYTES
}
