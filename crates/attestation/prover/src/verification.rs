//! Verifies that the attestation of an attestor describes the connection that the prover saw
//! itself.

use std::{ops::Range, time::Duration};

use attestation::{
    attest::Disclosure,
    body::Body,
    descriptor::Descriptor,
    evidence::verify_findings,
    full_reveal::Findings,
    protocol::{self, Receipt},
    signed::{self, Attestation, hex},
    tlog::{LogProof, TlogError},
};
use domain::session::{ExtractedData, ProofHash};
use ports::attestor::{AttestError, Issuer};
use rustls::pki_types::UnixTime;

use crate::connection::PlatformConnection;

/// Maximum difference between the attestor's clock and the local one.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// The recorded connection, its identifier, and the attestor's receipt for it.
pub(crate) struct RecordedConnection {
    pub(crate) id: [u8; 16],
    pub(crate) connection: PlatformConnection,
    pub(crate) receipt: Receipt,
    /// Time limits for the reveal message and for the examination.
    pub(crate) proving_timeout: Duration,
    pub(crate) examination_timeout: Duration,
}

/// The values of a request that the attestation has to repeat.
pub(crate) struct ExpectedContext {
    pub(crate) session: [u8; 32],
    pub(crate) partner: [u8; 32],
    pub(crate) challenge: Vec<u8>,
}

/// Verifies that an attestation is for this connection and states its content. Returns its hash and
/// the disclosed values.
pub(crate) fn verify_attestation(
    signed: &protocol::SignedAttestation,
    issuer: &Issuer,
    (recording, expected): (&RecordedConnection, &ExpectedContext),
    (findings, descriptor): (&Findings, &Descriptor),
) -> Result<(ProofHash, ExtractedData), AttestError> {
    let untrue = |error: &dyn std::error::Error| AttestError::Untrue(error.to_string());
    let trusted = signed::Issuer {
        name: String::new(),
        public_key: hex(&issuer.public_key),
        valid_from: issuer.valid_from,
        valid_to: issuer.valid_to,
        revoked_at: None,
    };
    let attestation = signed::verify(&signed.attestation, &[trusted]);
    let attestation = attestation.map_err(|error| untrue(&error))?;
    verify_inclusion(&signed.inclusion, &attestation, issuer).map_err(|error| untrue(&error))?;
    let body = &attestation.body;
    let disclosure = Disclosure::read(&signed.disclosure).map_err(|error| untrue(&error))?;
    disclosure.verify(body).map_err(|error| untrue(&error))?;
    check_context(body, recording, expected).map_err(|why| AttestError::Untrue(why.to_owned()))?;
    let capture = recording.connection.capture();
    let checked = verify_findings(findings, capture, descriptor, body, Some(&disclosure));
    checked.map_err(|error| untrue(&error))?;
    let values = disclosure.claims(body);
    let values = values.ok_or_else(|| AttestError::Untrue("it does not open its claims".into()))?;
    let proof = ProofHash::new(&attestation.proof_hash);
    Ok((proof.ok_or_else(|| AttestError::Untrue("its hash is malformed".into()))?, values))
}

/// Checks the values that only the attestor knows: they must belong to this conversation and be
/// plausible.
fn check_context(
    body: &Body,
    recording: &RecordedConnection,
    expected: &ExpectedContext,
) -> Result<(), &'static str> {
    let RecordedConnection { id, receipt, .. } = recording;
    let stated = (body.id, body.session, body.partner, &body.challenge);
    if stated != (*id, expected.session, expected.partner, &expected.challenge) {
        return Err("it is for another connection");
    }
    if body.attempt == 0 {
        return Err("its attempt number is zero");
    }
    let time = &body.time;
    let is_of_receipt = (time.opened, time.closed) == (receipt.opened, receipt.closed);
    if !is_of_receipt || time.signed < time.closed || !is_within_skew(time.signed..time.signed) {
        return Err("its times cannot be those of this connection");
    }
    if body.server.address != receipt.address {
        return Err("its server address differs from the receipt");
    }
    Ok(())
}

/// Returns whether a receipt is for the recorded bytes and for the present time.
pub(crate) fn matches_receipt(
    receipt: &Receipt,
    id: &[u8; 16],
    connection: &PlatformConnection,
) -> bool {
    let capture = connection.capture();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).ok();
    receipt.id == *id
        && receipt.capture == attestation::attest::capture_hash(id, capture)
        && Some(receipt.client_length) == length(capture.client)
        && Some(receipt.server_length) == length(capture.server)
        && matches!(receipt.address.len(), 4 | 16)
        && receipt.opened <= receipt.closed
        && is_within_skew(receipt.opened..receipt.opened)
        && is_within_skew(receipt.closed..receipt.closed)
}

/// Returns whether the present time is within this range in milliseconds since 1970, allowing for
/// clock skew.
pub(crate) fn is_within_skew(time: Range<u64>) -> bool {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let now = milliseconds(Duration::from_secs(UnixTime::now().as_secs()));
    let skew = milliseconds(MAX_CLOCK_SKEW);
    let within = time.start.saturating_sub(skew)..=time.end.saturating_add(skew);
    time.start <= time.end && within.contains(&now)
}

/// Verifies that an attestation is in the attestor's log, by a checkpoint that the attestor's key
/// cosigned.
fn verify_inclusion(
    inclusion: &[u8],
    attestation: &Attestation,
    issuer: &Issuer,
) -> Result<(), TlogError> {
    let proof = LogProof::read(inclusion)?;
    let key = proof.key_of(&issuer.public_key)?;
    proof.verify_attestation(attestation, &key).map(|_| ())
}
