//! Runs the rules of the attestation on a recorded connection, as prover and attestor do, but without
//! a proof.

use attestation::{
    CertificateTrust, ExaminationError,
    descriptor::Descriptor,
    full_reveal,
    zk::{Statement, ZkBackend, ZkError},
    zktls::{self, HidePolicy},
};
use domain::workflow::AttestMode;
use rustls::{
    CipherSuite,
    pki_types::{TrustAnchor, UnixTime},
};

use crate::{
    connection::ProbedConnection, observation::ExaminedMode, target::ProbeTarget, text::printable,
};

pub(crate) const MODES: [AttestMode; 3] =
    [AttestMode::ZktlsFull, AttestMode::ZktlsRequest, AttestMode::FullReveal];

/// Examines a connection in each mode that can have its cipher suite, with a claim at this pointer.
pub(crate) fn examine(
    connection: &ProbedConnection,
    target: &ProbeTarget,
    pointer: &str,
    roots: &[TrustAnchor<'_>],
) -> Vec<(AttestMode, ExaminedMode)> {
    let secret = connection.handshake_secret();
    let Some((suite, secret)) = connection.suite().zip(secret) else { return vec![] };
    let is_proved = suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
    let fits = |mode: &AttestMode| is_proved || *mode == AttestMode::FullReveal;
    let trust = CertificateTrust { roots, now: UnixTime::now() };
    let examined = MODES.into_iter().filter(fits).map(|mode| {
        let result =
            examine_mode(connection, &secret, &target.descriptor(mode, pointer), mode, &trust);
        (mode, result.map_or_else(|error| refusal(&error), |()| ExaminedMode::Accepted))
    });
    examined.collect()
}

fn examine_mode(
    connection: &ProbedConnection,
    secret: &[u8],
    descriptor: &Descriptor,
    mode: AttestMode,
    trust: &CertificateTrust<'_>,
) -> Result<(), ExaminationError> {
    let capture = connection.capture();
    match mode {
        AttestMode::FullReveal => {
            full_reveal::examine(capture, secret, descriptor, trust).map(drop)
        }
        AttestMode::ZktlsRequest | AttestMode::ZktlsFull => {
            let secret = secret.try_into().map_err(|_| ExaminationError::SecretLength)?;
            let hide = HidePolicy::of(descriptor);
            zktls::reveal(capture, secret, &hide, &NoProof, &descriptor.host, trust).map(drop)
        }
    }
}

fn refusal(error: &ExaminationError) -> ExaminedMode {
    let why = printable(&error.to_string());
    if matches!(error, ExaminationError::Zk(ZkError::TooLong)) {
        ExaminedMode::TooLong
    } else if matches!(
        error,
        ExaminationError::Response(_) | ExaminationError::Body(_) | ExaminationError::Selective(_)
    ) {
        ExaminedMode::ResponseRefused(why)
    } else {
        ExaminedMode::ConnectionRefused(why)
    }
}

/// Proves nothing: a probe asks for everything that precedes a proof.
struct NoProof;

impl ZkBackend for NoProof {
    fn name(&self) -> &'static str {
        "none"
    }

    fn prove(&self, _: &Statement, _: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        Ok(vec![])
    }

    fn circuit(&self, _: &Statement) -> Result<[u8; 32], ZkError> {
        Ok([0; 32])
    }

    fn verify(&self, _: &Statement, _: &[u8]) -> Result<(), ZkError> {
        Err(ZkError::Prove("a probe has no proof".to_owned()))
    }
}
