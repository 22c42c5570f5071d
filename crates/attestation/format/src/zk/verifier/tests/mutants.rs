//! Structural mutants of a proof: parts are removed, added, repeated, swapped, emptied, made absent
//! or present, zero, the identity, or taken from another proof.

#[cfg(test)]
use rayon::prelude::*;

use super::{
    small::{FOUR_ROWS, ONE_ROW},
    tree::Node,
};

#[cfg(test)]
const MUTANTS: u64 = 100_000;

/// Pseudorandom numbers with a fixed seed (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }
}

/// Proofs to take parts from: of the same statement, and of another circuit.
pub(in crate::zk) struct Sources {
    proof: Node,
    others: [Node; 2],
    /// The unmodified proofs of the statement.
    honest: [Vec<u8>; 2],
}

impl Sources {
    fn made() -> Self {
        let honest = [ONE_ROW.prove(), ONE_ROW.prove()];
        let [proof, other] = honest.each_ref().map(|proof| Node::of(proof));
        Self { proof, others: [other, Node::of(&FOUR_ROWS.prove())], honest }
    }

    /// Mutates this proof, with parts of another one of the same statement.
    #[cfg(test)]
    pub(in crate::zk) fn of(honest: [Vec<u8>; 2]) -> Self {
        let [proof, other] = honest.each_ref().map(|proof| Node::of(proof));
        Self { proof, others: [other, Node::of(&ONE_ROW.prove())], honest }
    }

    /// Returns a mutant, or `None` if the mutation gave an honest proof.
    #[cfg(test)]
    pub(in crate::zk) fn mutant(&self, seed: u64) -> Option<Vec<u8>> {
        let mut numbers = Numbers(seed);
        let mut mutant = self.proof.clone();
        for _ in 0..=numbers.below(3) {
            mutate(&mut mutant, self, &mut numbers);
        }
        Some(mutant.bytes()).filter(|bytes| !self.honest.contains(bytes))
    }

    fn any(&self, numbers: &mut Numbers) -> Node {
        let mut other = self.others[numbers.below(2)].clone();
        chosen(&mut other, numbers).clone()
    }
}

/// Selects a part, with similar probability for each kind of part: most parts are the 2,048 values
/// of one list.
fn chosen<'a>(node: &'a mut Node, numbers: &mut Numbers) -> &'a mut Node {
    let inner = !node.parts().is_empty();
    if !inner || numbers.below(6) == 0 {
        return node;
    }
    let mut parts = node.parts();
    let at = numbers.below(parts.len());
    chosen(parts.swap_remove(at), numbers)
}

fn mutate(tree: &mut Node, sources: &Sources, numbers: &mut Numbers) {
    let other = sources.any(numbers);
    let kind = numbers.below(12);
    let node = chosen(tree, numbers);
    match (node, kind) {
        (Node::List(nodes), 0) if !nodes.is_empty() => {
            nodes.remove(numbers.below(nodes.len()));
        }
        (Node::List(nodes), 1) => nodes.insert(numbers.below(nodes.len() + 1), other),
        (Node::List(nodes), 2) if !nodes.is_empty() => {
            let at = numbers.below(nodes.len());
            nodes.insert(at, nodes[at].clone());
        }
        (Node::List(nodes) | Node::Fields(nodes), 3 | 4) if nodes.len() > 1 => {
            let (left, right) = (numbers.below(nodes.len()), numbers.below(nodes.len()));
            nodes.swap(left, right);
        }
        (Node::List(nodes), 5) => nodes.clear(),
        (Node::List(nodes), 6) if nodes.len() > 1 => {
            let at = numbers.below(nodes.len());
            let to = numbers.below(nodes.len());
            nodes[to] = nodes[at].clone();
        }
        (Node::List(nodes), 7) => nodes.reverse(),
        (Node::Option(option), _) => {
            *option = option.is_none().then(|| Box::new(other));
        }
        (Node::Scalar(bytes), 0..=2) => *bytes = [0; 32],
        (Node::Scalar(bytes), 3) => *bytes = [0xff; 32],
        (Node::Scalar(bytes), 4) => bytes[numbers.below(32)] ^= 1 << numbers.below(8),
        // The identity, an invalid point, unused flags, and the negated point.
        (Node::Point(bytes), 0) => {
            *bytes = [0; 33];
            bytes[0] = 0x40;
        }
        (Node::Point(bytes), 1) => *bytes = [0; 33],
        (Node::Point(bytes), 2) => bytes[0] ^= 1 << numbers.below(8),
        (Node::Point(bytes), 3) => bytes[0] ^= 0x80,
        (Node::Point(bytes), 4) => bytes[1 + numbers.below(32)] ^= 1 << numbers.below(8),
        (node, _) => *node = other,
    }
}

/// For the fuzz target: applies up to four mutations, each determined by eight of these bytes; if
/// the first byte is odd, the rest is the proof itself.
///
/// # Panics
/// Panics if the result is accepted and is not an honest proof.
#[cfg(fuzzing)]
pub fn refuse(bytes: &[u8]) {
    static SOURCES: std::sync::LazyLock<Sources> = std::sync::LazyLock::new(Sources::made);
    let Some((kind, rest)) = bytes.split_first() else { return };
    if kind % 2 == 1 {
        assert!(ONE_ROW.verifier.verify(&ONE_ROW.circuit.public(), rest).is_err());
        return;
    }
    let mut mutant = SOURCES.proof.clone();
    for seed in rest.chunks(8).take(4) {
        let mut eight = [0; 8];
        eight[..seed.len()].copy_from_slice(seed);
        mutate(&mut mutant, &SOURCES, &mut Numbers(u64::from_le_bytes(eight)));
    }
    let bytes = mutant.bytes();
    let refused = ONE_ROW.verifier.verify(&ONE_ROW.circuit.public(), &bytes).is_err();
    assert!(refused || SOURCES.honest.contains(&bytes));
}

#[test]
fn no_mutant_is_accepted_and_none_panics() {
    let sources = Sources::made();
    assert_eq!(ONE_ROW.verifier.verify(&ONE_ROW.circuit.public(), &sources.proof.bytes()), Ok(()));
    // Some mutations change nothing: a few more are applied than needed.
    let seeds = 0..MUTANTS + MUTANTS / 4;
    let results: Vec<_> = seeds
        .into_par_iter()
        .filter_map(|seed| sources.mutant(seed).map(|mutant| (seed, refused(&mutant))))
        .collect();
    let accepted: Vec<_> =
        results.iter().filter(|(_, refused)| !refused).map(|(seed, _)| seed).collect();
    assert!(accepted.is_empty(), "accepted: {:?}", &accepted[..accepted.len().min(10)]);
    assert!(u64::try_from(results.len()).unwrap() >= MUTANTS, "{} mutants", results.len());
}

#[cfg(test)]
fn refused(mutant: &[u8]) -> bool {
    ONE_ROW.verifier.verify(&ONE_ROW.circuit.public(), mutant).is_err()
}
