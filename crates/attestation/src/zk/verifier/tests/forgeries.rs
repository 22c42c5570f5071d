//! Forgeries that spartan2's own verifier accepts. The public values are of no witness: 4 is the
//! square of 2 and of -2, and neither times 4 is 9.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    super::{Refused, Scalar},
    forger::{Deviation, Forger},
    small::{FOUR_ROWS, ONE_ROW},
    tree::Node,
};

fn false_values() -> [Scalar; 2] {
    [4, 9].map(Scalar::from)
}

fn forged(deviation: Deviation) -> Vec<u8> {
    Forger::new(&ONE_ROW).proof(&false_values(), deviation).bytes()
}

/// The forger is one: by the rules alone it proves nothing, and each deviation convinces spartan2.
#[test]
fn a_malicious_prover_needs_its_deviation() {
    let by_the_rules = forged(Deviation::None);
    assert_eq!(ONE_ROW.spartan2(&by_the_rules), None);
    assert_eq!(
        ONE_ROW.verifier.verify(&false_values(), &by_the_rules),
        Err(Refused::Evaluation),
        "everything holds but the witness's evaluation"
    );
    for deviation in
        [Deviation::NoRandomPublicValues, Deviation::SharedCommitment, Deviation::MoreRounds]
    {
        let accepted = ONE_ROW.spartan2(&forged(deviation));
        assert_eq!(accepted, Some(false_values().to_vec()), "{deviation:?}");
    }
}

#[test]
fn each_forgery_is_refused_for_its_structure() {
    for deviation in
        [Deviation::NoRandomPublicValues, Deviation::SharedCommitment, Deviation::MoreRounds]
    {
        let proof = forged(deviation);
        let refused = ONE_ROW.verifier.verify(&false_values(), &proof);
        assert_eq!(refused, Err(Refused::Size), "{deviation:?}");
    }
}

/// The size alone does not decide: other lists are made shorter or longer until it is right again.
#[test]
fn each_forgery_of_the_right_size_is_refused_for_its_structure() {
    let size = ONE_ROW.verifier.layout.bytes();
    for (deviation, expected) in [
        (Deviation::NoRandomPublicValues, Refused::Count),
        (Deviation::SharedCommitment, Refused::Option),
        (Deviation::MoreRounds, Refused::Count),
    ] {
        let mut proof = forged(deviation);
        proof.resize(size, 0);
        assert_eq!(
            ONE_ROW.verifier.verify(&false_values(), &proof),
            Err(expected),
            "{deviation:?}"
        );
    }
}

/// Unequal lengths of lists that are folded together: a panic in spartan2, an error here.
#[test]
fn unequal_lengths_are_errors_and_no_panic() {
    let mut proof = Node::of(&ONE_ROW.prove());
    // The commitment to the witness of the random instance.
    let Node::Fields(fields) = &mut proof else { panic!("a proof has fields") };
    let Node::Fields(random) = &mut fields[2] else { panic!("an instance has fields") };
    let Node::List(rows) = &mut random[0] else { panic!("a commitment has rows") };
    rows.pop();
    let proof = proof.bytes();
    let spartan2 = catch_unwind(AssertUnwindSafe(|| ONE_ROW.spartan2(&proof)));
    assert!(spartan2.is_err(), "spartan2 panics");
    let public = ONE_ROW.circuit.public();
    assert_eq!(ONE_ROW.verifier.verify(&public, &proof), Err(Refused::Size));
}

#[test]
fn a_witness_of_several_rows_is_forged_as_little() {
    let public = false_values();
    let proof = Forger::new(&FOUR_ROWS).proof(&public, Deviation::NoRandomPublicValues).bytes();
    assert_eq!(FOUR_ROWS.spartan2(&proof), Some(public.to_vec()));
    assert_eq!(FOUR_ROWS.verifier.verify(&public, &proof), Err(Refused::Size));
}
