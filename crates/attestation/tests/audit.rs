//! An audit of the circuit: no witness is left that anybody could choose. Every bit of it is
//! flipped once, and some constraint has to break; and none may be anything but a bit.
//!
//! `cargo test -p attestation --test audit`
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

use attestation::zk::{Block, Statement, synthesize};
use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::Field as _;
use spartan2::{provider::T256HyraxEngine, traits::Engine};

type Scalar = <T256HyraxEngine as Engine>::Scalar;
type Sum = Vec<(Index, Scalar)>;

/// A circuit, written down.
#[derive(Default)]
struct Record {
    inputs: Vec<Scalar>,
    witness: Vec<Scalar>,
    /// Of two sums the product is the third.
    constraints: Vec<[Sum; 3]>,
}

impl Record {
    fn sum(&self, sum: &Sum) -> Scalar {
        let value = |index: &Index| match index {
            Index::Input(at) => self.inputs[*at],
            Index::Aux(at) => self.witness[*at],
        };
        sum.iter().fold(Scalar::ZERO, |all, (index, weight)| all + value(index) * weight)
    }

    fn holds(&self, at: usize) -> bool {
        let [left, right, product] = &self.constraints[at];
        self.sum(left) * self.sum(right) == self.sum(product)
    }

    /// By witness: the constraints that it is in.
    fn uses(&self) -> Vec<Vec<usize>> {
        let mut uses = vec![vec![]; self.witness.len()];
        for (number, constraint) in self.constraints.iter().enumerate() {
            for (index, _) in constraint.iter().flatten() {
                if let Index::Aux(at) = index
                    && uses[*at].last() != Some(&number)
                {
                    uses[*at].push(number);
                }
            }
        }
        uses
    }
}

impl ConstraintSystem<Scalar> for Record {
    type Root = Self;

    fn new() -> Self {
        Self { inputs: vec![Scalar::ONE], ..Self::default() }
    }

    fn alloc<V, A, N>(&mut self, _: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        self.witness.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.witness.len() - 1)))
    }

    fn alloc_input<V, A, N>(&mut self, _: A, value: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, N, L, R, P>(&mut self, _: A, left: L, right: R, product: P)
    where
        A: FnOnce() -> N,
        N: Into<String>,
        L: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        R: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        P: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let sum = |all: LinearCombination<Scalar>| {
            all.iter().map(|(variable, weight)| (variable.get_unchecked(), *weight)).collect()
        };
        self.constraints.push([
            sum(left(LinearCombination::zero())),
            sum(right(LinearCombination::zero())),
            sum(product(LinearCombination::zero())),
        ]);
    }

    fn push_namespace<N, A>(&mut self, _: A)
    where
        N: Into<String>,
        A: FnOnce() -> N,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

fn statement() -> Statement {
    let plain = Block {
        nonce: [3; 12],
        counter: 1,
        ciphertext: std::array::from_fn(|at| u8::try_from(at * 3).unwrap()),
        opened: 0x0f0f_0f0f_0f0f_0f0f,
        ..Block::BLANK
    };
    let tag = Block { nonce: [3; 12], opened: u64::from(u32::MAX), ..Block::BLANK };
    Statement {
        hellos: [1; 32],
        transcript: [2; 32],
        server_handshake: [0; 32],
        client_handshake: [0; 32],
        server_data: [0; 32],
        client_iv: [0; 12],
        blocks: vec![tag, plain],
    }
}

#[test]
fn no_witness_is_free() {
    let mut record = Record::new();
    synthesize(&mut record, &statement(), &[5; 32]).unwrap();
    let constraints = record.constraints.len();
    assert!((0..constraints).all(|at| record.holds(at)), "the honest assignment fits");
    let uses = record.uses();
    let breaks = |record: &Record, at: usize| uses[at].iter().any(|number| !record.holds(*number));
    let (mut bits, mut free, mut loose) = (0, vec![], vec![]);
    for at in 0..record.witness.len() {
        let own = record.witness[at];
        bits += usize::from(own == Scalar::ZERO || own == Scalar::ONE);
        record.witness[at] = Scalar::ONE - own;
        if !breaks(&record, at) {
            free.push(at);
        }
        record.witness[at] = Scalar::from(2);
        if !breaks(&record, at) {
            loose.push(at);
        }
        record.witness[at] = own;
    }
    println!(
        "{constraints} constraints, {} public values, {} witnesses, all of them bits: {}",
        record.inputs.len() - 1,
        record.witness.len(),
        bits == record.witness.len()
    );
    assert_eq!((free.len(), loose.len()), (0, 0), "free: {free:?}, loose: {loose:?}");
    assert_eq!(bits, record.witness.len());
}
