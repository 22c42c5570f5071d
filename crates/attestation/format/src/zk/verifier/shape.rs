//! The shape of a circuit: its constraint matrices and every size that they determine.
//!
//! A verifier takes each length, count and number of rounds from here, never from a proof.

use std::collections::HashMap;

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::{Field as _, PrimeField as _};
use rayon::prelude::*;

use super::{Scalar, checks::Rounds};

/// Number of columns of a row of the witness that are committed to together, in the main circuit
/// and in the circuit of the verifier's checks (spartan2 0.9: `DEFAULT_COMMITMENT_WIDTH`, and the
/// width that `SpartanZkSNARK::setup` passes on).
pub(super) const MAIN_WIDTH: usize = 2048;
pub(super) const CHECKS_WIDTH: usize = 16;

/// Three sparse matrices, a row for each constraint: `(A·z) ∘ (B·z) = C·z`.
#[derive(Default)]
pub(super) struct Matrices {
    matrices: [Sparse; 3],
    rows: usize,
}

/// A matrix in compressed rows. Few different coefficients occur: each entry refers to one by
/// index.
#[derive(Default)]
struct Sparse {
    /// The end of each row.
    ends: Vec<u32>,
    columns: Vec<u32>,
    coefficients: Vec<u32>,
}

/// A constraint system that records the constraints and no values.
pub(crate) struct Recorder {
    matrices: Matrices,
    /// Column numbers of inputs have [`INPUT`] set until the number of witnesses is known.
    inputs: u32,
    witnesses: u32,
    values: Vec<Scalar>,
    known: HashMap<[u8; 32], u32>,
}

/// Marks the column of an input.
const INPUT: u32 = 1 << 31;

/// The shape of a circuit, as a verifier needs it.
pub(super) struct Shape {
    matrices: Matrices,
    values: Vec<Scalar>,
    /// Public values, without the constant one.
    pub(super) public: usize,
    /// Witness values, padded with zeros to whole rows of commitments.
    pub(super) witnesses: usize,
    /// Constraints, padded to a power of two.
    pub(super) constraints: usize,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            matrices: Matrices::default(),
            // The constant one is the first.
            inputs: 1,
            witnesses: 0,
            values: vec![],
            known: HashMap::new(),
        }
    }

    pub(super) const fn witnesses(&self) -> u32 {
        self.witnesses
    }

    /// Returns the shape of the recorded circuit, its witnesses padded to a power of two that is a
    /// multiple of `row` and at least the number of public values. `None` if a number does not fit.
    pub(super) fn padded(self, row: usize) -> Option<Shape> {
        let witnesses = usize::try_from(self.witnesses).ok()?.checked_next_multiple_of(row)?;
        let public = usize::try_from(self.inputs).ok()?;
        let witnesses = witnesses.max(public).max(row).checked_next_power_of_two()?;
        self.shape(witnesses, |witness| witness)
    }

    /// Returns the shape of the recorded circuit, with each witness in the column that `place`
    /// returns, of `witnesses` columns; the constant one and the public values follow them. `None`
    /// if a number does not fit.
    pub(super) fn shape(self, witnesses: usize, place: impl Fn(u32) -> u32) -> Option<Shape> {
        let first_input = u32::try_from(witnesses).ok()?;
        let mut matrices = self.matrices;
        for column in matrices.matrices.iter_mut().flat_map(|matrix| &mut matrix.columns) {
            *column = match *column & INPUT {
                0 => place(*column),
                _ => first_input.checked_add(*column & !INPUT)?,
            };
        }
        Some(Shape {
            public: usize::try_from(self.inputs).ok()?.checked_sub(1)?,
            constraints: matrices.rows.checked_next_power_of_two()?,
            witnesses,
            values: self.values,
            matrices,
        })
    }

    fn name(&mut self, coefficient: Scalar) -> u32 {
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let name = *self.known.entry(*coefficient.to_repr().inner()).or_insert(next);
        if name == next {
            self.values.push(coefficient);
        }
        name
    }

    fn write(&mut self, which: usize, sum: &LinearCombination<Scalar>) {
        for (variable, coefficient) in sum.iter() {
            if bool::from(coefficient.is_zero()) {
                continue;
            }
            let column = match variable.get_unchecked() {
                Index::Input(at) => INPUT | u32::try_from(at).unwrap_or(u32::MAX),
                Index::Aux(at) => u32::try_from(at).unwrap_or(u32::MAX),
            };
            let coefficient = self.name(*coefficient);
            if let Some(matrix) = self.matrices.matrices.get_mut(which) {
                matrix.columns.push(column);
                matrix.coefficients.push(coefficient);
            }
        }
        if let Some(matrix) = self.matrices.matrices.get_mut(which) {
            matrix.ends.push(u32::try_from(matrix.columns.len()).unwrap_or(u32::MAX));
        }
    }
}

impl Shape {
    /// Returns the numbers of rounds of the sum-checks over rows and over columns.
    pub(super) fn rounds(&self) -> Rounds {
        let log = |count: usize| usize::try_from(count.ilog2()).unwrap_or(usize::MAX);
        Rounds { outer: log(self.constraints), inner: log(self.witnesses.next_power_of_two()) + 1 }
    }

    /// Evaluates the multilinear extensions of the three matrices at a point. `rows` and `columns`
    /// are the point's tables of `eq`: one value for each row and each column.
    pub(super) fn evaluate(&self, rows: &[Scalar], columns: &[Scalar]) -> [Scalar; 3] {
        let row = |matrix: &Sparse, at: usize| {
            let begin = at.checked_sub(1).map_or(Some(0), |before| matrix.end(before));
            let range = begin.unwrap_or_default()..matrix.end(at).unwrap_or_default();
            let entries = matrix.columns.get(range.clone()).unwrap_or_default();
            let names = matrix.coefficients.get(range).unwrap_or_default();
            let terms = entries.iter().zip(names).map(|(column, name)| {
                let value = get(columns, *column);
                match self.values.get(usize::try_from(*name).unwrap_or(usize::MAX)) {
                    Some(coefficient) if *coefficient == Scalar::ONE => value,
                    Some(coefficient) => value * coefficient,
                    None => Scalar::ZERO,
                }
            });
            terms.fold(Scalar::ZERO, |sum, term| sum + term)
        };
        let whole = |matrix: &Sparse| {
            let terms = rows.par_iter().take(self.matrices.rows).enumerate();
            let terms = terms.map(|(at, weight)| row(matrix, at) * weight);
            terms.reduce(|| Scalar::ZERO, |left, right| left + right)
        };
        self.matrices.matrices.each_ref().map(whole)
    }
}

#[cfg(test)]
impl Shape {
    /// Multiplies the three matrices by a vector of columns, padded with zeros to a power of two.
    pub(super) fn products(&self, columns: &[Scalar]) -> [Vec<Scalar>; 3] {
        let row = |matrix: &Sparse, at: usize| {
            let begin = at.checked_sub(1).and_then(|before| matrix.end(before)).unwrap_or(0);
            let entries = (begin..matrix.end(at).unwrap_or(begin)).map(|entry| {
                let coefficient = matrix.coefficients.get(entry).copied().unwrap_or_default();
                get(&self.values, coefficient)
                    * get(columns, matrix.columns.get(entry).copied().unwrap_or_default())
            });
            entries.fold(Scalar::ZERO, |sum, term| sum + term)
        };
        let product = |matrix| (0..self.constraints).map(|at| row(matrix, at)).collect();
        self.matrices.matrices.each_ref().map(product)
    }
}

impl Sparse {
    fn end(&self, row: usize) -> Option<usize> {
        usize::try_from(*self.ends.get(row)?).ok()
    }
}

fn get(values: &[Scalar], at: u32) -> Scalar {
    usize::try_from(at).ok().and_then(|at| values.get(at).copied()).unwrap_or_default()
}

/// Returns the values of `eq(point, x)` for every `x` of as many bits, with the point's first
/// coordinate in the highest bit.
pub(super) fn eq_table(point: &[Scalar]) -> Vec<Scalar> {
    let mut table = vec![Scalar::ONE];
    for coordinate in point {
        let split = |value: &Scalar| {
            let high = *value * coordinate;
            [*value - high, high]
        };
        table = table.par_iter().with_min_len(1024).flat_map_iter(split).collect();
    }
    table
}

/// Returns `eq` of two points: one if both are the same bits.
pub(super) fn eq(left: &[Scalar], right: &[Scalar]) -> Scalar {
    let factors = left.iter().zip(right).map(|(left, right)| {
        let product = *left * right;
        Scalar::ONE - left - right + product + product
    });
    factors.fold(Scalar::ONE, |product, factor| product * factor)
}

/// Evaluates the multilinear polynomial with these values, and zeros after them, at a point.
pub(super) fn evaluate_short(values: &[Scalar], point: &[Scalar]) -> Scalar {
    // Only the last bits of an index can be set.
    let bits = usize::BITS.saturating_sub(values.len().saturating_sub(1).leading_zeros());
    let bits = usize::try_from(bits).unwrap_or(usize::MAX).min(point.len());
    let (high, low) = point.split_at_checked(point.len() - bits).unwrap_or((&[], point));
    let sum = values
        .iter()
        .zip(eq_table(low))
        .fold(Scalar::ZERO, |sum, (value, weight)| sum + *value * weight);
    high.iter().fold(sum, |product, coordinate| product * (Scalar::ONE - coordinate))
}

impl ConstraintSystem<Scalar> for Recorder {
    type Root = Self;

    fn new() -> Self {
        Self::new()
    }

    fn alloc<V, A, N>(&mut self, _: A, _: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        let at = self.witnesses;
        self.witnesses = at.checked_add(1).filter(|count| count & INPUT == 0).ok_or(FULL)?;
        Ok(Variable::new_unchecked(Index::Aux(usize::try_from(at).map_err(|_| FULL)?)))
    }

    fn alloc_input<V, A, N>(&mut self, _: A, _: V) -> Result<Variable, SynthesisError>
    where
        V: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> N,
        N: Into<String>,
    {
        let at = self.inputs;
        self.inputs = at.checked_add(1).filter(|count| count & INPUT == 0).ok_or(FULL)?;
        Ok(Variable::new_unchecked(Index::Input(usize::try_from(at).map_err(|_| FULL)?)))
    }

    fn enforce<A, N, L, R, P>(&mut self, _: A, left: L, right: R, product: P)
    where
        A: FnOnce() -> N,
        N: Into<String>,
        L: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        R: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        P: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        self.write(0, &left(LinearCombination::zero()));
        self.write(1, &right(LinearCombination::zero()));
        self.write(2, &product(LinearCombination::zero()));
        self.matrices.rows += 1;
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

/// No circuit of this crate comes near 2^31 variables.
const FULL: SynthesisError = SynthesisError::Unsatisfiable;
