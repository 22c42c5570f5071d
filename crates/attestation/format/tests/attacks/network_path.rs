//! Attacks that the proof cannot detect, and the reason why keys must be derived from the
//! handshake.

use attestation::{ExaminationError, zk::ProofError, zktls::RevealedServerData};

use crate::{
    forge::{Inner, iv_and_tag_keys},
    hidden::{HONEST, examined, hiding},
    lying_prover::{TestAttestor, not_proved},
    setup::{RESPONSE, Setup},
};

/// Attack 40, which succeeds: an attacker that controls the network path to the server, and works
/// with the prover, which knows the keys, replaces the server's response. The bytes do not show it.
/// Therefore an attestor resolves servers itself, uses no proxies, and connects to public addresses
/// only (`crates/attestation/prover/tests/witness.rs`), and every report states the assumption.
#[test]
fn who_controls_the_way_together_with_the_prover_can_forge_an_answer() {
    let forged = Setup::default().play().with(|parts| {
        let answer = String::from_utf8(RESPONSE.to_vec()).unwrap().replace("829137", "000001");
        let plaintext = parts.server.iter_mut().find(|inner| inner.kind == 23).unwrap();
        *plaintext = Inner::new(23, answer.as_bytes());
    });
    let found = forged.examine().unwrap();
    assert_eq!(found.claims[0].1, "\"acct-000001\"");
}

/// Attack 45: a response encrypted with a traffic secret that is not derived from the handshake.
/// Every tag is correct and the response is valid: the proof refuses it, because it derives another
/// secret. An examination that trusted the prover's secret would accept it.
#[test]
fn data_under_a_key_of_the_provers_choice_is_refused_by_the_proof() {
    let (honest, revealed) = &*HONEST;
    let chosen = [7; 32];
    let forged = honest.with(|parts| {
        parts.server_data = Some(chosen);
        let answer = String::from_utf8(RESPONSE.to_vec()).unwrap().replace("829137", "000001");
        let plaintext = parts.server.iter_mut().find(|inner| inner.kind == 23).unwrap();
        *plaintext = Inner::new(23, answer.as_bytes());
    });
    assert_eq!(forged.client, honest.client, "nothing else differs");
    let mut revealed = revealed.clone();
    assert_eq!(
        examined(&forged, &revealed),
        Err(ExaminationError::Tag(0)),
        "under the handshake's own secret"
    );
    revealed.server = RevealedServerData::TrafficSecret(chosen);
    assert_eq!(examined(&forged, &revealed), Err(not_proved(ProofError::PublicValues)));
    let attestor = TestAttestor { session: &forged, descriptor: &hiding() };
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// The same for the client's data: another request, under a key that the prover chose.
#[test]
fn a_request_under_a_key_of_the_provers_choice_is_refused_by_the_proof() {
    let (honest, revealed) = &*HONEST;
    let chosen = [9; 32];
    let forged = honest.with(|parts| {
        parts.client_data = Some(chosen);
    });
    let mut revealed = revealed.clone();
    assert_eq!(
        examined(&forged, &revealed),
        Err(ExaminationError::Tag(0)),
        "under the handshake's own secret"
    );
    let (iv, keys) = iv_and_tag_keys(&chosen, revealed.tag_keys.len());
    revealed.client_iv = iv;
    revealed.tag_keys = keys.into_iter().map(Into::into).collect();
    assert_eq!(examined(&forged, &revealed), Err(not_proved(ProofError::PublicValues)));
    let attestor = TestAttestor { session: &forged, descriptor: &hiding() };
    assert_eq!(attestor.refuses_a_proof_of(&revealed), not_proved(ProofError::ChecksPublicValues));
}

/// Attack 45 with full reveal: the keys are derived from the revealed secret, which must be that of
/// the recorded handshake.
#[test]
fn no_secret_but_the_handshakes_opens_anything() {
    let session = Setup::default().play();
    for bit in [0, 100, 255] {
        let mut secret = session.secret.clone();
        secret[bit / 8] ^= 1 << (bit % 8);
        let other = crate::setup::Session { secret, ..session.clone() };
        assert_eq!(other.examine(), Err(ExaminationError::Tag(0)));
    }
}
