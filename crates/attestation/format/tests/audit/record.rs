//! Records a circuit with the values of one assignment.

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::Field as _;

use crate::{Scalar, Sum};

/// A recorded circuit.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) inputs: Vec<Scalar>,
    pub(crate) witness: Vec<Scalar>,
    /// The product of the first two sums is the third.
    pub(crate) constraints: Vec<[Sum; 3]>,
}

impl Record {
    pub(crate) fn sum(&self, sum: &Sum) -> Scalar {
        let value = |index: &Index| match index {
            Index::Input(at) => self.inputs[*at],
            Index::Aux(at) => self.witness[*at],
        };
        sum.iter().fold(Scalar::ZERO, |all, (index, weight)| all + value(index) * weight)
    }

    pub(crate) fn holds(&self, at: usize) -> bool {
        let [left, right, product] = &self.constraints[at];
        self.sum(left) * self.sum(right) == self.sum(product)
    }
}

impl Record {
    pub(crate) fn number(&self, index: Index) -> usize {
        match index {
            Index::Input(at) => at,
            Index::Aux(at) => self.inputs.len() + at,
        }
    }

    pub(crate) fn uses(&self) -> Vec<Vec<usize>> {
        let mut uses = vec![vec![]; self.inputs.len() + self.witness.len()];
        for (constraint, sums) in self.constraints.iter().enumerate() {
            for (index, _) in sums.iter().flatten() {
                let uses = &mut uses[self.number(*index)];
                if uses.last() != Some(&constraint) {
                    uses.push(constraint);
                }
            }
        }
        uses
    }

    /// Returns the variable of a constraint of the form `(1 - x)·x = 0`.
    pub(crate) fn bit(&self, constraint: usize) -> Option<usize> {
        let [left, right, product] = &self.constraints[constraint];
        let ([(one, plus), (negative, minus)], [(own, weight)], []) =
            (left.as_slice(), right.as_slice(), product.as_slice())
        else {
            return None;
        };
        let (one, negative) = (self.number(*one), self.number(*negative));
        let fits = (one, *plus, *minus, *weight) == (0, Scalar::ONE, -Scalar::ONE, Scalar::ONE)
            && negative == self.number(*own);
        fits.then_some(negative)
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
