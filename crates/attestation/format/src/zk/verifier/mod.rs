//! A verifier of Spartan proofs that dictates their structure.
//!
//! The prover is spartan2 0.9 (`SpartanZkSNARK` over T256), whose own verifier takes lengths and
//! options from the proof. This one takes them from the circuit: [`layout`] parses proofs of
//! exactly one layout, [`shape`] and [`checks`] determine this layout, and everything below works
//! on values whose number was fixed before the proof was read.
//!
//! The protocol: Spartan with sum-checks (<https://eprint.iacr.org/2019/550>) over Hyrax
//! commitments (<https://eprint.iacr.org/2017/1132>). Instead of the sum-checks' messages the
//! prover sends commitments to them, and proves that a verifier would have accepted: the
//! constraints of these checks are folded with a random instance by Nova's scheme
//! (<https://eprint.iacr.org/2021/370>), which hides them, and the folded instance is proved by
//! Spartan without zero knowledge.

mod checks;
mod layout;
mod shape;
mod transcript;

#[cfg(any(test, fuzzing))]
pub(super) mod tests;

use bellpepper_core::SynthesisError;
use ff::Field as _;
use spartan2::provider::{
    pt256::t256,
    traits::{DlogGroup as _, DlogGroupExt as _},
};

use self::{
    layout::{Layout, Opening, Proof},
    shape::{CHECKS_WIDTH, MAIN_WIDTH, Shape, eq, eq_table, evaluate_short},
    transcript::Transcript,
};

pub(super) use self::{shape::Recorder, t256::Scalar};
use t256::{Affine, Point};

/// Why a proof is refused. The first failed check determines the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("its length is not that of a proof about this circuit")]
    Size,
    #[error("the length of a list is not that of this circuit")]
    Count,
    #[error("it contains a part that this circuit does not have")]
    Option,
    #[error("a scalar is not canonical")]
    Scalar,
    #[error("a point is not canonical, not on the curve, or the identity")]
    Point,
    #[error("it is for other public values")]
    PublicValues,
    #[error("a challenge is not the one that the transcript determines")]
    Challenge,
    #[error("the public values of its checks are not those of this circuit")]
    ChecksPublicValues,
    #[error("the final check of the outer sum-check fails")]
    OuterSumCheck,
    #[error("the final check of the inner sum-check fails")]
    InnerSumCheck,
    #[error("an opening does not match the commitment to the error vector")]
    ErrorOpening,
    #[error("an opening does not match the commitment to the witness of the checks")]
    WitnessOpening,
    #[error("the evaluation does not match the commitment to the witness")]
    Evaluation,
}

/// Verifies proofs about one circuit.
pub(super) struct Verifier {
    circuit: Shape,
    checks: Shape,
    layout: Layout,
    digest: [u8; 32],
    main: Generators,
    small: Generators,
}

/// Generators of Pedersen commitments without a known relation: hashed to the curve.
struct Generators {
    columns: Vec<Affine>,
    blind: Affine,
}

impl Generators {
    fn of(width: usize) -> Option<Self> {
        // Both widths start from one label, as in the prover: the small ones are a prefix of the
        // others. No check depends on their independence.
        let mut columns = Point::from_label(b"ck", width.checked_add(1)?);
        let blind = columns.pop()?;
        Some(Self { columns, blind })
    }
}

impl Verifier {
    /// Creates the verifier of a recorded circuit whose key has this digest in the prover. Takes
    /// seconds for a large one, and some hundred bytes of memory for each constraint.
    ///
    /// # Errors
    /// The circuit has too many variables.
    pub(super) fn new(circuit: Recorder, digest: [u8; 32]) -> Result<Self, SynthesisError> {
        const TOO_LARGE: SynthesisError = SynthesisError::Unsatisfiable;
        let circuit = circuit.padded(MAIN_WIDTH).ok_or(TOO_LARGE)?;
        let rounds = circuit.rounds();
        let checks = checks::shape(rounds)?;
        Ok(Self {
            layout: Layout::of(&circuit, rounds, &checks),
            circuit,
            checks,
            digest,
            main: Generators::of(MAIN_WIDTH).ok_or(TOO_LARGE)?,
            small: Generators::of(CHECKS_WIDTH).ok_or(TOO_LARGE)?,
        })
    }

    /// Verifies a proof that the circuit is satisfied with these public values.
    ///
    /// # Errors
    /// The first check that fails.
    pub(super) fn verify(&self, public: &[Scalar], proof: &[u8]) -> Result<(), ProofError> {
        let proof = self.layout.read(proof)?;
        if proof.public != public {
            return Err(ProofError::PublicValues);
        }
        let mut transcript = Transcript::new();
        transcript.bytes(b"vk", self.digest.to_vec());
        transcript.scalars(b"public_values", public);
        transcript.rows(b"comm_W_rest", &proof.witness);
        let rounds = self.layout.rounds;
        let tau = transcript.challenges(b"t", rounds.outer)?;
        let (r_x, r, r_y) = self.rounds(&proof, &mut transcript)?;
        // The public inputs of the checks are computed here.
        let [a, b, c] = self.circuit.evaluate(&eq_table(&r_x), &eq_table(&r_y));
        let (_, at) = r_y.split_first().ok_or(ProofError::Challenge)?;
        let constant: Vec<_> = [Scalar::ONE].iter().chain(public).copied().collect();
        let expected = [eq(&tau, &r_x), evaluate_short(&constant, at), a + r * b + r.square() * c];
        if proof.checks_public != expected {
            return Err(ProofError::ChecksPublicValues);
        }
        self.folded(&proof, &mut transcript)?;
        self.evaluation(&proof, at, &mut transcript)
    }

    /// Derives the challenges of the checks: those of the outer sum-check, the one that combines
    /// its claims, and those of the inner one.
    fn rounds(&self, proof: &Proof, transcript: &mut Transcript) -> Result<Points, ProofError> {
        let rounds = self.layout.rounds;
        let mut challenges = vec![];
        for (round, commitment) in proof.rounds.iter().enumerate() {
            transcript.rows(b"comm_w_round", std::slice::from_ref(commitment));
            if round < rounds.challenges() {
                challenges.push(transcript.challenge(b"challenge")?);
            }
        }
        if challenges != proof.challenges {
            return Err(ProofError::Challenge);
        }
        let inner = challenges.split_off((rounds.outer + 1).min(challenges.len()));
        let r = challenges.pop().ok_or(ProofError::Challenge)?;
        Ok((challenges, r, inner))
    }

    /// Verifies that the checks' instance, folded with the random one, satisfies the relaxed
    /// constraints `Az ∘ Bz = u·Cz + E` with `z = (W, u, X)`.
    fn folded(&self, proof: &Proof, transcript: &mut Transcript) -> Result<(), ProofError> {
        let random = &proof.random;
        let own = [proof.challenges.as_slice(), &proof.checks_public].concat();
        let relaxed = [
            transcript::rows(&random.witness),
            transcript::rows(&random.error),
            transcript::scalars(&[random.u]),
            transcript::scalars(&random.public),
        ];
        transcript.bytes(b"U1", relaxed.concat());
        let regular = [transcript::rows(&proof.rounds), transcript::scalars(&own)];
        transcript.bytes(b"U2", regular.concat());
        transcript.rows(b"comm_T", &proof.cross_term);
        let fold = transcript.challenge(b"r")?;
        let u = random.u + fold;
        let public: Vec<_> =
            random.public.iter().zip(&own).map(|(left, right)| *left + fold * right).collect();

        transcript.scalars(b"u_relaxed", &[u]);
        transcript.scalars(b"X_relaxed", &public);
        let rounds = self.layout.checks;
        let tau = transcript.challenges(b"t", rounds.outer)?;
        let (claim, r_x) = transcript.sum_check(Scalar::ZERO, &proof.outer)?;
        let [az, bz, cz] = proof.outer_claims;
        if claim != eq(&tau, &r_x) * (az * bz - cz) {
            return Err(ProofError::OuterSumCheck);
        }
        transcript.scalars(b"claims_outer", &proof.outer_claims);
        let weight = transcript.challenge(b"r")?;
        let rows = [(random.error.as_slice(), Scalar::ONE), (&proof.cross_term, fold)];
        let error =
            self.opened(&rows, &proof.error_opening, &r_x).ok_or(ProofError::ErrorOpening)?;
        let joint = az + weight * bz + weight.square() * (cz - error);
        let (claim, r_y) = transcript.sum_check(joint, &proof.inner)?;
        let (first, at) = r_y.split_first().ok_or(ProofError::InnerSumCheck)?;
        let rows = [(random.witness.as_slice(), Scalar::ONE), (&proof.rounds, fold)];
        let opened = self.opened(&rows, &proof.witness_opening, at);
        let witness = opened.ok_or(ProofError::WitnessOpening)?;
        let columns = eq_table(&r_y);
        let known = columns.iter().skip(self.checks.witnesses);
        let known = known.zip(std::iter::once(&u).chain(&public));
        let known = known.fold(Scalar::ZERO, |sum, (weight, value)| sum + *weight * value);
        let assignment = (Scalar::ONE - first) * witness + known;
        let [a, b, c] = self.checks.evaluate(&eq_table(&r_x), &columns);
        if claim != (a + weight * b + weight.square() * u * c) * assignment {
            return Err(ProofError::InnerSumCheck);
        }
        transcript.scalars(b"v_W", &proof.witness_opening.row);
        transcript.scalars(b"v_E", &proof.error_opening.row);
        Ok(())
    }

    /// Returns the value at a point of a polynomial whose rows are committed to, as a weighted sum
    /// of lists of commitments. Rows after the last one are zeros. `None` if the opening is wrong.
    fn opened(
        &self,
        rows: &[(&[Affine], Scalar)],
        opening: &Opening,
        at: &[Scalar],
    ) -> Option<Scalar> {
        let columns = usize::try_from(CHECKS_WIDTH.ilog2()).ok()?;
        let (high, low) = at.split_at_checked(at.len().checked_sub(columns)?)?;
        let weights = eq_table(high);
        let (mut points, mut scalars) = (vec![], vec![]);
        for (commitments, factor) in rows {
            if commitments.len() > weights.len() {
                return None;
            }
            points.extend_from_slice(commitments);
            scalars.extend(weights.iter().zip(*commitments).map(|(weight, _)| *weight * factor));
        }
        points.extend_from_slice(&self.small.columns);
        scalars.extend(opening.row.iter().map(|value| -*value));
        points.push(self.small.blind);
        scalars.push(-opening.blind);
        let values = opening.row.iter().zip(eq_table(low));
        let value = values.fold(Scalar::ZERO, |sum, (value, weight)| sum + *value * weight);
        vanishes(&scalars, &points).then_some(value)
    }

    /// Verifies that the witness has, at the point of the inner sum-check, the value that the
    /// checks' last round commits to.
    fn evaluation(
        &self,
        proof: &Proof,
        at: &[Scalar],
        transcript: &mut Transcript,
    ) -> Result<(), ProofError> {
        let arg = &proof.evaluation;
        transcript.rows(b"poly_com", &proof.witness);
        let columns = usize::try_from(MAIN_WIDTH.ilog2()).map_err(|_| ProofError::Evaluation)?;
        let high = at.len().checked_sub(columns).ok_or(ProofError::Evaluation)?;
        let (high, low) = at.split_at_checked(high).ok_or(ProofError::Evaluation)?;
        let row = sum(&eq_table(high), &proof.witness).ok_or(ProofError::Evaluation)?;
        let row = not_identity(row).ok_or(ProofError::Evaluation)?;
        let value = *proof.rounds.last().ok_or(ProofError::Evaluation)?;
        transcript.domain(b"inner product argument (linear)");
        transcript.points(b"U", &[row, value]);
        transcript.points(b"delta", &[arg.delta]);
        transcript.points(b"beta", &[arg.beta]);
        let r = transcript.challenge(b"r")?;
        let product = arg.row.iter().zip(eq_table(low));
        let product = product.fold(Scalar::ZERO, |sum, (value, weight)| sum + *value * weight);

        let points = [&self.main.columns, [self.main.blind, row, arg.delta].as_slice()].concat();
        let own = [-arg.row_blind, r, Scalar::ONE];
        let scalars: Vec<_> = arg.row.iter().map(|value| -*value).chain(own).collect();
        let first = *self.small.columns.first().ok_or(ProofError::Evaluation)?;
        let second = vanishes(
            &[-product, -arg.value_blind, r, Scalar::ONE],
            &[first, self.small.blind, value, arg.beta],
        );
        if second && vanishes(&scalars, &points) { Ok(()) } else { Err(ProofError::Evaluation) }
    }
}

type Points = (Vec<Scalar>, Scalar, Vec<Scalar>);

/// Returns the weighted sum of points, or `None` if the numbers of weights and points differ.
fn sum(weights: &[Scalar], points: &[Affine]) -> Option<Point> {
    if weights.len() != points.len() {
        return None;
    }
    Point::vartime_multiscalar_mul(weights, points, true).ok()
}

fn vanishes(weights: &[Scalar], points: &[Affine]) -> bool {
    sum(weights, points).is_some_and(|sum| sum == Point::zero())
}

fn not_identity(point: Point) -> Option<Affine> {
    (point != Point::zero()).then(|| point.affine())
}
