//! Computations of a prover: sum-checks, openings, and the parts of a proof as nodes.

use ff::{Field as _, PrimeField as _};
use halo2curves::group::GroupEncoding as _;

use super::{
    super::{Affine, CHECKS_WIDTH, Scalar, Transcript, checks::PUBLIC_VALUES, eq_table},
    tree::Node,
};

/// A vector with the commitments to its rows and their blinds.
pub(super) struct Committed {
    pub(super) values: Vec<Scalar>,
    pub(super) blinds: Vec<Scalar>,
    pub(super) rows: Vec<Affine>,
}

/// The checks' instance and its witness.
pub(super) struct Checks {
    pub(super) challenges: Vec<Scalar>,
    pub(super) public: [Scalar; PUBLIC_VALUES],
    pub(super) witness: Committed,
    /// The value that the last round commits to.
    pub(super) evaluation: Scalar,
}

impl Checks {
    /// Returns the point at which the witness is evaluated.
    pub(super) fn point(&self, outer: usize) -> &[Scalar] {
        &self.challenges[outer + 2..]
    }

    pub(super) fn node(&self, rounds: usize) -> Node {
        let rows = self.witness.rows.iter().map(|row| points(std::slice::from_ref(row)));
        let mut challenges: Vec<_> =
            self.challenges.iter().map(|one| scalars(std::slice::from_ref(one))).collect();
        challenges.resize(rounds, Node::List(vec![]));
        let public = scalars(&self.public);
        Node::Fields(vec![Node::List(rows.collect()), public, Node::List(challenges)])
    }
}

/// Proves a sum over all bits of a product of tables, of degree `N - 1`; the tables are folded to
/// their value at the point.
pub(super) fn sum_check<const N: usize>(
    tables: &mut [Vec<Scalar>],
    product: impl Fn(&[Scalar]) -> Scalar,
    transcript: &mut Transcript,
) -> (Vec<Vec<Scalar>>, Vec<Scalar>) {
    let (mut rounds, mut point) = (vec![], vec![]);
    while tables[0].len() > 1 {
        let half = tables[0].len() / 2;
        // Values at 0, 1, … N - 1, and from them the coefficients.
        let values: Vec<_> = (0..N)
            .map(|x| {
                let x = Scalar::from(u64::try_from(x).unwrap());
                let term = |at: usize| {
                    let at: Vec<_> = tables
                        .iter()
                        .map(|table| table[at] + x * (table[at + half] - table[at]))
                        .collect();
                    product(&at)
                };
                (0..half).map(term).fold(Scalar::ZERO, |sum, term| sum + term)
            })
            .collect();
        let mut coefficients = interpolated(&values);
        coefficients.remove(1);
        transcript.bytes(
            b"p",
            coefficients.iter().flat_map(|value| value.to_repr().as_ref().to_vec()).collect(),
        );
        let at = transcript.challenge(b"c").unwrap();
        for table in tables.iter_mut() {
            for index in 0..half {
                table[index] = table[index] + at * (table[index + half] - table[index]);
            }
            table.truncate(half);
        }
        rounds.push(coefficients);
        point.push(at);
    }
    (rounds, point)
}

/// Returns the coefficients of the polynomial with these values at 0, 1, 2, … (Lagrange).
fn interpolated(values: &[Scalar]) -> Vec<Scalar> {
    let mut sum = vec![Scalar::ZERO; values.len()];
    for (own, value) in values.iter().enumerate() {
        let mut basis = vec![Scalar::ONE];
        for other in (0..values.len()).filter(|other| *other != own) {
            let number = |at: usize| Scalar::from(u64::try_from(at).unwrap());
            let scale = (number(own) - number(other)).invert().unwrap();
            let mut next = vec![Scalar::ZERO; basis.len() + 1];
            for (degree, coefficient) in basis.iter().enumerate() {
                next[degree] -= *coefficient * number(other) * scale;
                next[degree + 1] += *coefficient * scale;
            }
            basis = next;
        }
        for (sum, coefficient) in sum.iter_mut().zip(basis) {
            *sum += coefficient * value;
        }
    }
    sum
}

pub(super) fn open(committed: &Committed, at: &[Scalar]) -> (Vec<Scalar>, Scalar) {
    let weights = eq_table(&at[..at.len() - usize::try_from(CHECKS_WIDTH.ilog2()).unwrap()]);
    let mut row = vec![Scalar::ZERO; CHECKS_WIDTH];
    for (values, weight) in committed.values.chunks(CHECKS_WIDTH).zip(&weights) {
        row.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value * weight);
    }
    let blinds = committed.blinds.iter().zip(&weights);
    (row, blinds.fold(Scalar::ZERO, |sum, (blind, weight)| sum + *blind * weight))
}

pub(super) fn join(rows: Vec<Committed>) -> Committed {
    let mut all = Committed { values: vec![], blinds: vec![], rows: vec![] };
    for row in rows {
        all.values.extend(row.values);
        all.blinds.extend(row.blinds);
        all.rows.extend(row.rows);
    }
    all
}

/// Adds a multiple of a vector to another one; the commitments of the sum are not needed.
pub(super) fn add(left: &Committed, right: &Committed, factor: Scalar) -> Committed {
    let sum = |left: &[Scalar], right: &[Scalar]| {
        left.iter().zip(right).map(|(left, right)| *left + factor * right).collect()
    };
    Committed {
        values: sum(&left.values, &right.values),
        blinds: sum(&left.blinds, &right.blinds),
        rows: vec![],
    }
}

pub(super) fn clone(committed: &Committed) -> Committed {
    Committed {
        values: committed.values.clone(),
        blinds: committed.blinds.clone(),
        rows: committed.rows.clone(),
    }
}

pub(super) fn scalar(value: &Scalar) -> Node {
    Node::Scalar(*value.to_repr().inner())
}

pub(super) fn scalars(values: &[Scalar]) -> Node {
    Node::List(values.iter().map(scalar).collect())
}

pub(super) fn one_point(point: &Affine) -> Node {
    Node::Point(*point.to_bytes().inner())
}

pub(super) fn points(points: &[Affine]) -> Node {
    Node::List(points.iter().map(one_point).collect())
}
