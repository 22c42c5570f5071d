//! What the proof cannot see, and why keys have to follow from the handshake.

use attestation::Refusal;
use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};

use crate::{
    forge::Inner,
    scene::{RESPONSE, Scene},
};

/// Attack 40, which succeeds: who controls the way to the server, and works with the prover, who
/// knows the keys, puts an answer of their own in the place of the server's. Nothing in the bytes
/// tells. That is why an attestor looks servers up itself, knows no proxies, and connects to public
/// addresses alone (`crates/prover/tests/witness.rs`), and why every report names the assumption.
#[test]
fn who_controls_the_way_together_with_the_prover_can_forge_an_answer() {
    let forged = Scene::default().play().with(|parts| {
        let answer = String::from_utf8(RESPONSE.to_vec()).unwrap().replace("829137", "000001");
        let said = parts.server.iter_mut().find(|inner| inner.kind == 23).unwrap();
        *said = Inner::new(23, answer.as_bytes());
    });
    let found = forged.examine().unwrap();
    assert_eq!(found.claims[0].1, "\"acct-000001\"");
}

/// Attack 45: for a few bytes another key of the cipher is found in no time, under which they say
/// something else. A witness that took keys from the prover would read that; the only key that this
/// one uses is the handshake's.
#[test]
fn a_key_that_reads_something_else_is_found_and_refused() {
    let plain = b"\"amount\":42";
    let at = plain.len() - 2;
    let (key, nonce) = ([7; 32], [9; 12]);
    let stream = |key: &[u8; 32], bytes: &mut [u8]| {
        ChaCha20::new(key.into(), &nonce.into()).apply_keystream(bytes);
    };
    let mut sent = *plain;
    stream(&key, &mut sent);
    let mut other = key;
    let tried = (0..u32::MAX).find(|number| {
        other[..4].copy_from_slice(&number.to_le_bytes());
        let mut read = sent;
        stream(&other, &mut read);
        read[at..] == *b"99"
    });
    println!("another key after {} trials", tried.unwrap());
    // The same with the secret that a prover tells: whatever it opens, it is not the handshake's.
    let session = Scene::default().play();
    for bit in [0, 100, 255] {
        let mut secret = session.secret.clone();
        secret[bit / 8] ^= 1 << (bit % 8);
        let other = crate::scene::Session { secret, ..session.clone() };
        assert_eq!(other.examine(), Err(Refusal::Tag(0)));
    }
}
