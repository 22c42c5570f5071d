//! Evidence for a verifier that trusts the attestor's recording but not its examination: the
//! recorded bytes and everything that was revealed to the attestor, so that all checks can be
//! repeated. It contains no credentials; attestations that reveal credentials have no evidence.

use minicbor::{Decode, Encode};
use rustls_pki_types::{TrustAnchor, UnixTime};

use crate::{
    attest::{AttestationContext, Disclosure, Leaf, attest, capture_summary},
    body::Body,
    descriptor::Descriptor,
    error::ExaminationError,
    full_reveal::{Capture, Findings},
    signed::{self, AttestationError},
    tls::flight::CertificateTrust,
    zk::ZkBackend,
    zktls::{Reveal, examine},
};

/// Maximum length of evidence.
pub const MAX_EVIDENCE_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Evidence {
    /// The recorded bytes from the client to the server, and back.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub client: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub server: Vec<u8>,
    #[n(2)]
    pub reveal: Reveal,
    /// The descriptor's JSON.
    #[n(3)]
    pub descriptor: String,
}

/// Why evidence does not support an attestation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    #[error("it is longer than {MAX_EVIDENCE_BYTES} bytes")]
    TooLong,
    #[error("failed to decode it: {0}")]
    Malformed(#[from] AttestationError),
    #[error("its descriptor is not the attested one")]
    Descriptor,
    #[error("its content is refused: {0}")]
    Refused(#[from] ExaminationError),
    #[error("its content differs from the signed body")]
    Mismatch,
    #[error("the disclosed values differ from its content")]
    Disclosure,
}

impl Evidence {
    /// Decodes evidence; [`Self::verify`] checks whether it supports an attestation.
    pub fn read(bytes: &[u8]) -> Result<Self, EvidenceError> {
        if bytes.len() > MAX_EVIDENCE_BYTES {
            Err(EvidenceError::TooLong)
        } else {
            Ok(signed::read(bytes)?)
        }
    }

    pub fn write(&self) -> Result<Vec<u8>, EvidenceError> {
        Ok(signed::write(self)?)
    }

    /// Returns its descriptor if it is valid.
    #[must_use]
    pub fn descriptor(&self) -> Option<Descriptor> {
        let descriptor: Descriptor = serde_json::from_str(&self.descriptor).ok()?;
        descriptor.check().is_ok().then_some(descriptor)
    }

    #[must_use]
    pub fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    /// Examines everything again, by the attestor's clock, and compares the findings with the
    /// signed and the disclosed values. Takes seconds.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn verify(
        &self,
        body: &Body,
        disclosure: Option<&Disclosure>,
        backend: &dyn ZkBackend,
        roots: &[TrustAnchor<'_>],
    ) -> Result<Findings, EvidenceError> {
        let descriptor =
            self.descriptor().filter(|descriptor| descriptor.reference() == body.descriptor);
        let descriptor = descriptor.ok_or(EvidenceError::Descriptor)?;
        let capture = self.capture();
        // The cheapest check comes first.
        if capture_summary(&body.id, capture) != body.capture {
            return Err(EvidenceError::Mismatch);
        }
        let now = std::time::Duration::from_millis(body.time.opened);
        let trust = CertificateTrust { roots, now: UnixTime::since_unix_epoch(now) };
        let findings = examine(capture, &self.reveal, backend, &descriptor, &trust)?;
        verify_findings(&findings, capture, &descriptor, body, disclosure)?;
        Ok(findings)
    }
}

/// Checks that the signed and disclosed values of a connection match the findings. Values that only
/// the attestor knows (times, names, attempt numbers) are accepted as signed.
///
/// # Errors
/// They do not match.
pub fn verify_findings(
    findings: &Findings,
    capture: Capture<'_>,
    descriptor: &Descriptor,
    body: &Body,
    disclosure: Option<&Disclosure>,
) -> Result<(), EvidenceError> {
    let (recomputed, opened) =
        attest(findings, capture, descriptor, AttestationContext::of(body), || [0; 16]);
    if without_commitments(recomputed) != without_commitments(body.clone()) {
        return Err(EvidenceError::Mismatch);
    }
    let shown = |revealed: &crate::commitment::Opening| {
        opened.openings.iter().any(|own| {
            (own.kind, own.index, &own.value) == (revealed.kind, revealed.index, &revealed.value)
        })
    };
    if disclosure.is_some_and(|disclosure| !disclosure.openings.iter().all(shown)) {
        return Err(EvidenceError::Disclosure);
    }
    Ok(())
}

/// Returns a body without the commitments, which can be compared only with a disclosure.
fn without_commitments(body: Body) -> Body {
    let none = Leaf([0; 32]).0;
    let mut body = body;
    body.request.root = none;
    body.response.root = none;
    for claim in &mut body.claims {
        claim.commitment = none;
    }
    body
}

impl AttestationContext {
    fn of(body: &Body) -> Self {
        Self {
            id: body.id,
            issuer: body.issuer,
            session: body.session,
            partner: body.partner,
            attempt: body.attempt,
            challenge: body.challenge.clone(),
            server_address: body.server.address.clone(),
            egress: body.server.egress,
            resolver: body.server.resolver,
            roots_sha256: body.tls.roots_sha256,
            time: body.time.clone(),
            attestor: body.attestor.clone(),
            log: body.log.clone(),
            blinding: body.blinding,
        }
    }
}
