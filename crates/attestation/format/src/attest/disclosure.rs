//! The disclosure of an attestation: openings of its commitments, and their verification.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::{
    body::{AttestedClaim, Body},
    commitment::{Opening, OpeningKind, merkle_root},
    signed::{self, AttestationError},
};

/// Maximum length of a disclosure.
pub const MAX_DISCLOSURE_BYTES: usize = 8 * 1024 * 1024;

/// Openings of an attestation's commitments, as far as the recipient may see the values.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Disclosure {
    /// The commitments to the request's revealed lines, in their order.
    #[n(0)]
    pub request: Vec<Leaf>,
    /// The commitments to the lines of the response's head and to the parts of its body.
    #[n(1)]
    pub response: Vec<Leaf>,
    #[n(2)]
    pub openings: Vec<Opening>,
}

/// A commitment in a Merkle tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(transparent)]
pub struct Leaf(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 32]);

/// Why a disclosure does not match an attestation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DisclosureError {
    #[error("it is longer than {MAX_DISCLOSURE_BYTES} bytes")]
    TooLong,
    #[error("failed to decode it: {0}")]
    Malformed(#[from] AttestationError),
    #[error("its commitments do not match the signed roots")]
    Root,
    #[error("the value of {0:?} {1} does not match its commitment")]
    Opening(OpeningKind, u32),
}

impl Disclosure {
    /// Decodes a disclosure; [`Self::verify`] compares it with an attestation.
    pub fn read(bytes: &[u8]) -> Result<Self, DisclosureError> {
        if bytes.len() > MAX_DISCLOSURE_BYTES {
            return Err(DisclosureError::TooLong);
        }
        Ok(signed::read(bytes)?)
    }

    pub fn write(&self) -> Result<Vec<u8>, DisclosureError> {
        Ok(signed::write(self)?)
    }

    /// Checks that all disclosed values match the body's commitments.
    pub fn verify(&self, body: &Body) -> Result<(), DisclosureError> {
        if tree_root(&self.request) != body.request.root
            || tree_root(&self.response) != body.response.root
        {
            return Err(DisclosureError::Root);
        }
        for opening in &self.openings {
            let at = usize::try_from(opening.index).unwrap_or(usize::MAX);
            let committed = match opening.kind {
                OpeningKind::RequestLine => self.request.get(at).map(|leaf| leaf.0),
                OpeningKind::ResponseLine | OpeningKind::BodyPart => {
                    self.response.get(at).map(|leaf| leaf.0)
                }
                OpeningKind::Claim => body.claims.get(at).map(|claim| claim.commitment),
            };
            if committed != Some(opening.commitment()) {
                return Err(DisclosureError::Opening(opening.kind, opening.index));
            }
        }
        Ok(())
    }

    /// Returns the claimed values by field, of a body that it [matches](Self::verify), or `None` if
    /// one of them is missing. Numbers are rounded to doubles as in a browser: use them only for
    /// comparison with values that a browser displayed.
    #[must_use]
    pub fn claims(&self, body: &Body) -> Option<serde_json::Map<String, serde_json::Value>> {
        let value = |(at, claim): (u32, &AttestedClaim)| {
            Some((claim.field.clone(), serde_json::from_str(self.claim(at)?).ok()?))
        };
        (0..).zip(&body.claims).map(value).collect()
    }

    /// Returns the claimed values by field, each as the attested JSON text, of a body that it
    /// [matches](Self::verify), or `None` if one of them is missing.
    #[must_use]
    pub fn claim_texts(&self, body: &Body) -> Option<BTreeMap<String, String>> {
        let text = |(at, claim): (u32, &AttestedClaim)| {
            Some((claim.field.clone(), self.claim(at)?.to_owned()))
        };
        (0..).zip(&body.claims).map(text).collect()
    }

    /// Returns a claim's value as JSON text, if it is disclosed.
    #[must_use]
    pub fn claim(&self, at: u32) -> Option<&str> {
        let mut claims = self.openings.iter().filter(|opening| opening.kind == OpeningKind::Claim);
        let opening = claims.find(|opening| opening.index == at)?;
        std::str::from_utf8(&opening.value).ok()
    }
}

/// Returns the root of the Merkle tree over these commitments.
pub(super) fn tree_root(leaves: &[Leaf]) -> [u8; 32] {
    merkle_root(&leaves.iter().map(|leaf| leaf.0).collect::<Vec<_>>())
}
