//! Forgeries that spartan2's own verifier accepts. The public values have no witness: 4 is the
//! square of 2 and of -2, and neither times 4 is 9.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{
    super::{ProofError, Scalar},
    deviation::{Deviation, Late},
    forger::Forger,
    small::{FOUR_ROWS, ONE_ROW},
    tree::Node,
};

fn false_values() -> [Scalar; 2] {
    [4, 9].map(Scalar::from)
}

fn forged(deviation: &Deviation) -> Vec<u8> {
    Forger::new(&ONE_ROW.verifier).proof(&false_values(), deviation).bytes()
}

/// The forger works: according to the protocol it proves nothing, and spartan2 accepts each
/// deviation.
#[test]
fn a_malicious_prover_needs_its_deviation() {
    let by_the_rules = forged(&Deviation::default());
    assert_eq!(ONE_ROW.spartan2(&by_the_rules), None);
    assert_eq!(
        ONE_ROW.verifier.verify(&false_values(), &by_the_rules),
        Err(ProofError::Evaluation),
        "only the witness's evaluation fails"
    );
    for deviation in Deviation::convincing() {
        let accepted = ONE_ROW.spartan2(&forged(&deviation));
        assert_eq!(accepted, Some(false_values().to_vec()), "{deviation:?}");
    }
}

#[test]
fn each_forgery_is_refused_for_its_structure() {
    for deviation in Deviation::convincing() {
        let proof = forged(&deviation);
        let refused = ONE_ROW.verifier.verify(&false_values(), &proof);
        assert_eq!(refused, Err(ProofError::Size), "{deviation:?}");
    }
}

/// The length alone does not decide: other lists are made shorter or longer until it is correct
/// again.
#[test]
fn each_forgery_of_the_right_size_is_refused_for_its_structure() {
    let size = ONE_ROW.verifier.layout.bytes();
    let expected = [ProofError::Count, ProofError::Option, ProofError::Count];
    for (deviation, expected) in Deviation::convincing().iter().zip(expected) {
        let mut proof = forged(deviation);
        proof.resize(size, 0);
        assert_eq!(
            ONE_ROW.verifier.verify(&false_values(), &proof),
            Err(expected),
            "{deviation:?}"
        );
    }
}

/// Unequal lengths of lists that are folded together cause a panic in spartan2 and an error here.
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
    assert_eq!(ONE_ROW.verifier.verify(&public, &proof), Err(ProofError::Size));
}

#[test]
fn a_witness_of_several_rows_is_forged_as_little() {
    let public = false_values();
    let [deviation, ..] = Deviation::convincing();
    let proof = Forger::new(&FOUR_ROWS.verifier).proof(&public, &deviation).bytes();
    assert_eq!(FOUR_ROWS.spartan2(&proof), Some(public.to_vec()));
    assert_eq!(FOUR_ROWS.verifier.verify(&public, &proof), Err(ProofError::Size));
}

/// A forger may commit to any witness of any length.
#[test]
fn no_witness_proves_what_does_not_hold() {
    let numbers = |count: u64| (1..=count).map(Scalar::from).collect::<Vec<_>>();
    for (count, expected) in [
        (2048, ProofError::Evaluation),
        (1, ProofError::Evaluation),
        (0, ProofError::Size),
        (2049, ProofError::Size),
        (3 * 2048, ProofError::Size),
    ] {
        let deviation = Deviation { witness: Some(numbers(count)), ..Deviation::default() };
        let proof = forged(&deviation);
        assert_eq!(ONE_ROW.verifier.verify(&false_values(), &proof), Err(expected), "{count}");
    }
}

/// Every deviation, and in each list of its proof every other length, is refused because of the
/// structure, also if the length is correct again.
#[test]
fn no_length_and_no_option_is_the_provers_choice() {
    let mut all = vec![];
    for random_public in [None, Some(0), Some(1), Some(99)] {
        for late in [None, Some(Late::Shared), Some(Late::Precommitted)] {
            for more_rounds in [false, true] {
                all.push(Deviation { random_public, late, more_rounds, ..Deviation::default() });
            }
        }
    }
    for deviation in &all[1..] {
        let mut proof = Forger::new(&ONE_ROW.verifier).proof(&false_values(), deviation);
        refused_for_its_structure(&proof, &format!("{deviation:?}"));
        if all.iter().take(8).any(|some| format!("{some:?}") == format!("{deviation:?}")) {
            for list in 0..lists(&mut proof).len() {
                for length in [0, 1, 2, 3, 17, 2047, 2049] {
                    let mut other = proof.clone();
                    resize(lists(&mut other).swap_remove(list), length);
                    refused_for_its_structure(&other, &format!("{deviation:?} {list} {length}"));
                }
            }
        }
    }
}

fn refused_for_its_structure(proof: &Node, what: &str) {
    let mut proof = proof.bytes();
    for size in [proof.len(), ONE_ROW.verifier.layout.bytes()] {
        proof.resize(size, 0);
        let refused = ONE_ROW.verifier.verify(&false_values(), &proof).unwrap_err();
        let structure = [ProofError::Size, ProofError::Count, ProofError::Option];
        assert!(structure.contains(&refused), "{what}: {refused}");
    }
}

fn lists(node: &mut Node) -> Vec<&mut Node> {
    if let Node::List(nodes) = node
        && nodes.iter().all(|node| matches!(node, Node::Scalar(_) | Node::Point(_)))
    {
        return vec![node];
    }
    node.parts().into_iter().flat_map(lists).collect()
}

fn resize(list: &mut Node, length: usize) {
    let Node::List(nodes) = list else { panic!("it is a list") };
    let one = nodes.first().cloned().unwrap_or(Node::Scalar([0; 32]));
    nodes.resize(length, one);
}
