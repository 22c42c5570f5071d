//! Reveals that are too long to be proved: they are refused by their size, before any of their
//! bytes is processed.

use attestation::{
    CertificateTrust, ExaminationError,
    full_reveal::Capture,
    http::request::hidden_ranges,
    zk::{Statement, ZkBackend, ZkError},
    zktls::{HidePolicy, Reveal, RevealedServerData, reveal},
};
use rustls::pki_types::UnixTime;

use crate::{
    hidden::{self, hiding},
    selective,
    setup::{HOST, Setup, request_with},
};

const TOO_LONG: ExaminationError = ExaminationError::Zk(ZkError::TooLong);

/// Proves nothing.
pub(crate) struct NoProof;

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
        Ok(())
    }
}

/// Returns the attestor's error for a request with a cookie of this length and a wrong tag key: the
/// tag error occurs only after the size check.
fn examined(length: usize) -> ExaminationError {
    let request = request_with(&format!("Cookie: {}\r\n", "a".repeat(length)));
    let session = Setup { request, ..Setup::default() }.play();
    let capture = Capture { client: &session.client, server: &session.server };
    let trust = CertificateTrust { roots: &session.roots, now: UnixTime::now() };
    let secret = session.secret.as_slice().try_into().unwrap();
    let descriptor = hiding();
    // An honest prover refuses it earlier; this tests the attestor.
    let hide = HidePolicy::unchecked(
        Box::new(|plaintext| Ok(hidden_ranges(plaintext, &descriptor)?)),
        None,
    );
    let mut revealed = reveal(capture, secret, &hide, &NoProof, HOST, &trust).unwrap();
    revealed.tag_keys[0][0] ^= 1;
    hidden::examined(&session, &revealed).unwrap_err()
}

#[test]
fn a_request_that_no_circuit_holds_is_refused_by_its_size() {
    assert_eq!(examined(100), ExaminationError::Tag(0));
    assert_eq!(examined(9_000), ExaminationError::Tag(0));
    assert_eq!(examined(10_000), TOO_LONG);
    assert_eq!(examined(14_000), TOO_LONG);
}

#[test]
fn more_hidden_parts_than_bytes_can_be_proved_are_refused_by_their_number() {
    let (session, revealed) = &*hidden::HONEST;
    let mut many = revealed.clone();
    many.request_bytes = vec![b'a'; 900_000];
    many.hidden = (0..200_000).map(|at| 4 * at..4 * at + 2).collect();
    assert_eq!(hidden::examined(session, &many), Err(TOO_LONG));
    let (session, revealed) = &*selective::HONEST;
    let with = |change: &dyn Fn(&mut Reveal)| {
        let mut revealed = revealed.clone();
        change(&mut revealed);
        selective::examined(session, &revealed).unwrap_err()
    };
    let many = |revealed: &mut Reveal| {
        let RevealedServerData::Proved(answered) = &mut revealed.server else { return };
        answered.response_bytes = vec![b'a'; 900_000];
        answered.hidden = (0..200_000).map(|at| 4 * at..4 * at + 2).collect();
    };
    assert_eq!(with(&many), TOO_LONG);
    let request = |revealed: &mut Reveal| {
        revealed.request_bytes = vec![b'a'; 900_000];
        revealed.hidden = (0..200_000).map(|at| 4 * at..4 * at + 2).collect();
    };
    assert_eq!(with(&request), TOO_LONG);
}
