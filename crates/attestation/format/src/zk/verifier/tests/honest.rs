//! Tests that honest proofs are accepted, and that the keys are the pinned ones.

use super::super::Scalar;
use super::{
    super::ProofError,
    small::{FOUR_ROWS, ONE_ROW},
};
use ff::Field as _;

#[test]
fn an_honest_proof_is_accepted_as_spartan2_accepts_it() {
    for setup in [&*ONE_ROW, &*FOUR_ROWS] {
        let public = setup.circuit.public();
        for _ in 0..3 {
            let proof = setup.prove();
            assert_eq!(proof.len(), setup.verifier.layout.bytes());
            assert_eq!(setup.spartan2(&proof), Some(public.to_vec()));
            assert_eq!(setup.verifier.verify(&public, &proof), Ok(()));
        }
    }
}

#[test]
fn a_proof_is_one_of_its_public_values_alone() {
    let proof = ONE_ROW.prove();
    let [square, cube] = ONE_ROW.circuit.public();
    for other in [vec![square, cube + Scalar::ONE], vec![square], vec![square, cube, cube], vec![]]
    {
        assert_eq!(ONE_ROW.verifier.verify(&other, &proof), Err(ProofError::PublicValues));
    }
}

#[test]
fn a_proof_is_one_of_its_circuit_alone() {
    let public = FOUR_ROWS.circuit.public();
    assert_eq!(FOUR_ROWS.verifier.verify(&public, &ONE_ROW.prove()), Err(ProofError::Size));
}
