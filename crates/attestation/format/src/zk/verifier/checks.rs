//! The circuit of the verifier's checks.
//!
//! For zero knowledge a proof does not contain the messages of the sum-checks. It commits to them,
//! round by round, and proves that a verifier that saw them would accept. This circuit computes the
//! checks of that verifier, as constraints: two sum-checks (Spartan,
//! <https://eprint.iacr.org/2019/550>, section 4), in the order of constraints of spartan2 0.9, on
//! which its proofs depend.

use bellpepper_core::{ConstraintSystem, SynthesisError, num::AllocatedNum};
use ff::Field as _;

use super::{
    Scalar,
    shape::{CHECKS_WIDTH, Recorder, Shape},
};

type Number = AllocatedNum<Scalar>;

/// Public values after the challenges: `eq(τ, r_x)`, the public part of `z` at `r_y`, and the joint
/// value of the matrices at `(r_x, r_y)`.
pub(super) const PUBLIC_VALUES: usize = 3;

/// The rounds of the outer sum-check (over constraints) and of the inner one (over columns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rounds {
    pub(super) outer: usize,
    pub(super) inner: usize,
}

impl Rounds {
    /// Returns the number of rounds with a commitment of the prover: the sum-checks, the end of
    /// each, and one for the witness's evaluation.
    pub(super) const fn commitments(self) -> usize {
        self.challenges() + 2
    }

    /// Returns the number of rounds after which the verifier sends a challenge.
    pub(super) const fn challenges(self) -> usize {
        self.outer + 1 + self.inner
    }
}

/// Returns the shape of the circuit; each round's witnesses fill one row of commitments.
pub(super) fn shape(rounds: Rounds) -> Result<Shape, SynthesisError> {
    let mut cs = Recorder::new();
    let mut ends = vec![];
    let mut circuit = Circuit { cs: &mut cs, ends: &mut ends };
    circuit.all(rounds)?;
    let row = u32::try_from(CHECKS_WIDTH).map_err(|_| SynthesisError::Unsatisfiable)?;
    let place = |witness: u32| {
        let round = ends.partition_point(|end| *end <= witness);
        let begin = round.checked_sub(1).and_then(|before| ends.get(before)).copied();
        let round = u32::try_from(round).unwrap_or(u32::MAX);
        round.saturating_mul(row).saturating_add(witness - begin.unwrap_or_default())
    };
    let witnesses = rounds.commitments() * CHECKS_WIDTH;
    cs.shape(witnesses, place).ok_or(SynthesisError::Unsatisfiable)
}

struct Circuit<'a> {
    cs: &'a mut Recorder,
    /// Number of witnesses at the end of each round.
    ends: &'a mut Vec<u32>,
}

impl Circuit<'_> {
    fn all(&mut self, rounds: Rounds) -> Result<(), SynthesisError> {
        // The outer sum-check starts at zero: every constraint holds.
        let mut polynomial = self.witnesses::<4>()?.to_vec();
        let zero = self.zero()?;
        self.sums_to(&polynomial, &zero);
        self.end_round()?;
        for _ in 1..rounds.outer {
            let next = self.witnesses::<4>()?.to_vec();
            let challenge = self.input()?;
            let claim = self.evaluate(&polynomial, &challenge)?;
            self.sums_to(&next, &claim);
            polynomial = next;
            self.end_round()?;
        }
        // Its end: the claim is eq(τ, r_x) · (Az · Bz - Cz).
        let challenge = self.input()?;
        let claim = self.evaluate(&polynomial, &challenge)?;
        let [az, bz, cz, eq_tau] = self.witnesses::<4>()?;
        let product = az.mul(&mut *self.cs, &bz)?;
        self.cs.enforce(
            || "",
            |sum| sum + eq_tau.get_variable(),
            |sum| sum + product.get_variable() - cz.get_variable(),
            |sum| sum + claim.get_variable(),
        );
        self.end_round()?;
        // The inner sum-check starts at Az + r·Bz + r²·Cz.
        let mut polynomial = self.witnesses::<3>()?.to_vec();
        let r = self.input()?;
        let r_squared = r.square(&mut *self.cs)?;
        let r_bz = r.mul(&mut *self.cs, &bz)?;
        let [joint] = self.witnesses()?;
        self.cs.enforce(
            || "",
            |sum| sum + cz.get_variable(),
            |sum| sum + r_squared.get_variable(),
            |sum| sum + joint.get_variable() - az.get_variable() - r_bz.get_variable(),
        );
        self.sums_to(&polynomial, &joint);
        self.end_round()?;
        let mut first = None;
        for _ in 1..rounds.inner {
            let next = self.witnesses::<3>()?.to_vec();
            let challenge = self.input()?;
            let claim = self.evaluate(&polynomial, &challenge)?;
            self.sums_to(&next, &claim);
            polynomial = next;
            first.get_or_insert(challenge);
            self.end_round()?;
        }
        let first = first.ok_or(SynthesisError::Unsatisfiable)?;
        let evaluation = self.inner_end(&polynomial, &eq_tau, &first)?;
        self.end_round()?;
        // A separate row for the witness's evaluation, which is compared with the opening.
        let [alone] = self.witnesses()?;
        self.cs.enforce(
            || "",
            |sum| sum + alone.get_variable(),
            |sum| sum + Recorder::one(),
            |sum| sum + evaluation.get_variable(),
        );
        for _ in 1..CHECKS_WIDTH {
            self.zero()?;
        }
        self.end_round()
    }

    /// Constrains the end of the inner sum-check: the claim is the joint value of the matrices
    /// times the value of `z = (W, 1, X)` at `r_y`. Returns the witness's part of the latter.
    fn inner_end(
        &mut self,
        polynomial: &[Number],
        eq_tau: &Number,
        first: &Number,
    ) -> Result<Number, SynthesisError> {
        let challenge = self.input()?;
        let claim = self.evaluate(polynomial, &challenge)?;
        let [evaluation] = self.witnesses()?;
        eq_tau.inputize(&mut *self.cs)?;
        let public_part = self.input()?;
        let [weighted] = self.witnesses()?;
        self.cs.enforce(
            || "",
            |sum| sum + evaluation.get_variable(),
            |sum| sum + Recorder::one() - first.get_variable(),
            |sum| sum + weighted.get_variable(),
        );
        let [z] = self.witnesses()?;
        self.cs.enforce(
            || "",
            |sum| sum + public_part.get_variable(),
            |sum| sum + first.get_variable(),
            |sum| sum + z.get_variable() - weighted.get_variable(),
        );
        let matrices = self.input()?;
        self.cs.enforce(
            || "",
            |sum| sum + matrices.get_variable(),
            |sum| sum + z.get_variable(),
            |sum| sum + claim.get_variable(),
        );
        Ok(evaluation)
    }

    fn end_round(&mut self) -> Result<(), SynthesisError> {
        let end = self.cs.witnesses();
        let used = end - self.ends.last().copied().unwrap_or_default();
        let fits = usize::try_from(used).is_ok_and(|used| (1..=CHECKS_WIDTH).contains(&used));
        self.ends.push(end);
        if fits { Ok(()) } else { Err(SynthesisError::Unsatisfiable) }
    }

    fn witnesses<const N: usize>(&mut self) -> Result<[Number; N], SynthesisError> {
        let mut all = vec![];
        for _ in 0..N {
            all.push(AllocatedNum::alloc(&mut *self.cs, || Ok(Scalar::ZERO))?);
        }
        all.try_into().map_err(|_| SynthesisError::Unsatisfiable)
    }

    fn input(&mut self) -> Result<Number, SynthesisError> {
        AllocatedNum::alloc_input(&mut *self.cs, || Ok(Scalar::ZERO))
    }

    /// Allocates a witness that is zero.
    fn zero(&mut self) -> Result<Number, SynthesisError> {
        let [zero] = self.witnesses()?;
        self.cs.enforce(
            || "",
            |sum| sum + zero.get_variable(),
            |sum| sum + Recorder::one(),
            |sum| sum,
        );
        Ok(zero)
    }

    /// Evaluates a polynomial at a challenge by Horner's rule; coefficients are in ascending order.
    fn evaluate(&mut self, polynomial: &[Number], at: &Number) -> Result<Number, SynthesisError> {
        let (highest, lower) = polynomial.split_last().ok_or(SynthesisError::Unsatisfiable)?;
        let mut value = highest.clone();
        for coefficient in lower.iter().rev() {
            let [next] = self.witnesses()?;
            self.cs.enforce(
                || "",
                |sum| sum + value.get_variable(),
                |sum| sum + at.get_variable(),
                |sum| sum + next.get_variable() - coefficient.get_variable(),
            );
            value = next;
        }
        Ok(value)
    }

    /// Constrains that the polynomial's values at zero and at one sum to the claim.
    fn sums_to(&mut self, polynomial: &[Number], claim: &Number) {
        self.cs.enforce(
            || "",
            |sum| {
                let constant = polynomial.first().into_iter();
                let terms = polynomial.iter().chain(constant);
                terms.fold(sum, |sum, term| sum + term.get_variable())
            },
            |sum| sum + Recorder::one(),
            |sum| sum + claim.get_variable(),
        );
    }
}
