//! Tests that the pinned digests are the derived ones.

mod real;

use spartan2::traits::snark::{DigestHelperTrait as _, R1CSSNARKTrait as _};

use super::{CIRCUITS, Circuit, Snark, blank_statement};

/// Verifiers trust the pinned digests: spartan2 derives the same ones from the circuits. The two
/// largest take minutes and gigabytes: with `ATTACK_LARGE=1`. A prover refuses to prove with a key
/// that has another digest, for any size.
#[test]
fn the_pinned_digests_are_those_of_the_circuits() {
    let large = std::env::var("ATTACK_LARGE").is_ok();
    for (kind, pinned) in CIRCUITS.into_iter().filter(|(kind, _)| large || kind.blocks <= 64) {
        let (_, key) =
            Snark::setup(Circuit { statement: blank_statement(kind), secret: [0; 32] }).unwrap();
        let digest = key.digest().unwrap();
        assert_eq!(digest, pinned, "{kind:?}: {digest:02x?}");
    }
}

#[test]
fn the_most_blocks_are_those_of_the_largest_circuit() {
    let most = CIRCUITS.into_iter().map(|(kind, _)| kind.blocks).max();
    assert_eq!(most, Some(crate::zk::MAX_BLOCKS));
}
