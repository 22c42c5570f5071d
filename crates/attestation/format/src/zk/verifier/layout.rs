//! The layout of a circuit's proofs: their values, the order of these, and their number.
//!
//! The shape of the circuit determines all of it. A proof also contains lengths and options,
//! because spartan2 0.9 writes them (bincode with fixed-width integers); here they are bytes that
//! must have the expected values. No length in a proof causes an allocation, a repetition or a
//! skip.

use ff::PrimeField as _;
use halo2curves::group::{GroupEncoding as _, prime::PrimeCurveAffine as _};

use super::{
    Affine, ProofError, Scalar,
    checks::{PUBLIC_VALUES, Rounds},
    shape::{CHECKS_WIDTH, MAIN_WIDTH, Shape},
};

/// Length of a scalar in bytes: its canonical form, little-endian.
const SCALAR_BYTES: usize = 32;
/// Length of a point in bytes: flags, then the x-coordinate.
const POINT_BYTES: usize = 33;
/// Length of a list's count in bytes.
const COUNT_BYTES: usize = 8;
/// Number of coefficients per round of a sum-check of degree three and two; the linear coefficient
/// is omitted, because the claim determines it.
const CUBIC_COEFFICIENTS: usize = 3;
const QUADRATIC_COEFFICIENTS: usize = 2;

/// The numbers of values of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Public values of the circuit.
    pub(super) public: usize,
    /// Rows of the commitment to the witness.
    pub(super) rows: usize,
    /// Rounds of the two sum-checks over the circuit.
    pub(super) rounds: Rounds,
    /// Rows of the commitment to the error vector of the circuit of checks.
    pub(super) error_rows: usize,
    /// Rounds of the two sum-checks over the circuit of checks.
    pub(super) checks: Rounds,
}

/// A proof with canonical values in the positions that the circuit's shape determines.
pub(super) struct Proof {
    pub(super) witness: Vec<Affine>,
    pub(super) public: Vec<Scalar>,
    /// One commitment for each round of the checks.
    pub(super) rounds: Vec<Affine>,
    pub(super) checks_public: [Scalar; PUBLIC_VALUES],
    pub(super) challenges: Vec<Scalar>,
    pub(super) random: Relaxed,
    pub(super) cross_term: Vec<Affine>,
    pub(super) outer: Vec<[Scalar; CUBIC_COEFFICIENTS]>,
    pub(super) outer_claims: [Scalar; 3],
    pub(super) inner: Vec<[Scalar; QUADRATIC_COEFFICIENTS]>,
    pub(super) witness_opening: Opening,
    pub(super) error_opening: Opening,
    pub(super) evaluation: Evaluation,
}

/// A relaxed instance (Nova, <https://eprint.iacr.org/2021/370>, section 4.1).
pub(super) struct Relaxed {
    pub(super) witness: Vec<Affine>,
    pub(super) error: Vec<Affine>,
    pub(super) public: Vec<Scalar>,
    pub(super) u: Scalar,
}

/// A combination of the rows of a committed matrix, and of their blinds.
pub(super) struct Opening {
    pub(super) row: Vec<Scalar>,
    pub(super) blind: Scalar,
}

/// The proof that a committed polynomial has a committed value at a point.
pub(super) struct Evaluation {
    pub(super) delta: Affine,
    pub(super) beta: Affine,
    pub(super) row: Vec<Scalar>,
    pub(super) row_blind: Scalar,
    pub(super) value_blind: Scalar,
}

impl Layout {
    /// Returns the layout of proofs about this circuit with this circuit of checks.
    pub(super) fn of(circuit: &Shape, rounds: Rounds, checks: &Shape) -> Self {
        Self {
            public: circuit.public,
            rows: circuit.witnesses / MAIN_WIDTH,
            rounds,
            error_rows: checks.constraints / CHECKS_WIDTH,
            checks: checks.rounds(),
        }
    }

    /// Returns the length of a proof in bytes.
    pub(super) fn bytes(&self) -> usize {
        let list = |count: usize, each: usize| COUNT_BYTES + count * each;
        let rounds = self.rounds.commitments();
        let challenges = self.rounds.challenges();
        let instance =
            2 + list(self.rows, POINT_BYTES) + list(self.public, SCALAR_BYTES) + COUNT_BYTES;
        let checks = list(rounds, COUNT_BYTES + POINT_BYTES)
            + list(PUBLIC_VALUES, SCALAR_BYTES)
            + list(rounds, COUNT_BYTES)
            + challenges * SCALAR_BYTES;
        let random = list(rounds, POINT_BYTES)
            + list(self.error_rows, POINT_BYTES)
            + list(challenges + PUBLIC_VALUES, SCALAR_BYTES)
            + SCALAR_BYTES;
        let cross_term = list(self.error_rows, POINT_BYTES);
        let relaxed = list(self.checks.outer, COUNT_BYTES + CUBIC_COEFFICIENTS * SCALAR_BYTES)
            + 3 * SCALAR_BYTES
            + list(self.checks.inner, COUNT_BYTES + QUADRATIC_COEFFICIENTS * SCALAR_BYTES)
            + 2 * (list(CHECKS_WIDTH, SCALAR_BYTES) + SCALAR_BYTES);
        let evaluation = 2 * POINT_BYTES + list(MAIN_WIDTH, SCALAR_BYTES) + 2 * SCALAR_BYTES;
        instance + checks + random + cross_term + relaxed + evaluation
    }

    /// Parses a proof.
    ///
    /// # Errors
    /// It has another length, a count or an option in it is not the expected one, or a scalar or a
    /// point is not canonical, not on the curve, or the identity.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Proof, ProofError> {
        if bytes.len() != self.bytes() {
            return Err(ProofError::Size);
        }
        let mut reader = ProofReader { rest: bytes };
        let proof = self.proof(&mut reader)?;
        if reader.rest.is_empty() { Ok(proof) } else { Err(ProofError::Size) }
    }

    fn proof(&self, reader: &mut ProofReader<'_>) -> Result<Proof, ProofError> {
        let (rounds, challenges) = (self.rounds.commitments(), self.rounds.challenges());
        // No witness is shared between circuits or committed to early.
        reader.absent()?;
        reader.absent()?;
        Ok(Proof {
            witness: reader.list(self.rows, ProofReader::point)?,
            public: reader.list(self.public, ProofReader::scalar)?,
            // The circuit itself takes no challenges.
            rounds: reader.empty_list().and_then(|()| {
                reader.list(rounds, |reader| reader.count(1).and_then(|()| reader.point()))
            })?,
            checks_public: reader.array()?,
            challenges: reader.challenges(rounds, challenges)?,
            random: Relaxed {
                witness: reader.list(rounds, ProofReader::point)?,
                error: reader.list(self.error_rows, ProofReader::point)?,
                public: reader.list(challenges + PUBLIC_VALUES, ProofReader::scalar)?,
                u: reader.scalar()?,
            },
            cross_term: reader.list(self.error_rows, ProofReader::point)?,
            outer: reader.list(self.checks.outer, ProofReader::array)?,
            outer_claims: [reader.scalar()?, reader.scalar()?, reader.scalar()?],
            inner: reader.list(self.checks.inner, ProofReader::array)?,
            witness_opening: reader.opening()?,
            error_opening: reader.opening()?,
            evaluation: Evaluation {
                delta: reader.point()?,
                beta: reader.point()?,
                row: reader.list(MAIN_WIDTH, ProofReader::scalar)?,
                row_blind: reader.scalar()?,
                value_blind: reader.scalar()?,
            },
        })
    }
}

struct ProofReader<'a> {
    rest: &'a [u8],
}

impl ProofReader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ProofError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ProofError::Size)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads an absent option.
    fn absent(&mut self) -> Result<(), ProofError> {
        if self.bytes()? == [0] { Ok(()) } else { Err(ProofError::Option) }
    }

    /// Reads the count of a list, which must be the expected one.
    fn count(&mut self, expected: usize) -> Result<(), ProofError> {
        let count = u64::from_le_bytes(self.bytes::<COUNT_BYTES>()?);
        if u64::try_from(expected) == Ok(count) { Ok(()) } else { Err(ProofError::Count) }
    }

    fn empty_list(&mut self) -> Result<(), ProofError> {
        self.count(0)
    }

    fn list<T>(
        &mut self,
        count: usize,
        each: impl Fn(&mut Self) -> Result<T, ProofError>,
    ) -> Result<Vec<T>, ProofError> {
        self.count(count)?;
        (0..count).map(|_| each(self)).collect()
    }

    fn array<const N: usize>(&mut self) -> Result<[Scalar; N], ProofError> {
        self.count(N)?;
        let mut values = [Scalar::default(); N];
        for value in &mut values {
            *value = self.scalar()?;
        }
        Ok(values)
    }

    /// Reads the challenges, one in each round except the last two.
    fn challenges(&mut self, rounds: usize, challenges: usize) -> Result<Vec<Scalar>, ProofError> {
        self.count(rounds)?;
        let mut all = vec![];
        for round in 0..rounds {
            let count = usize::from(round < challenges);
            self.count(count)?;
            if count == 1 {
                all.push(self.scalar()?);
            }
        }
        Ok(all)
    }

    fn opening(&mut self) -> Result<Opening, ProofError> {
        Ok(Opening { row: self.list(CHECKS_WIDTH, Self::scalar)?, blind: self.scalar()? })
    }

    /// Reads a scalar below the order of the group.
    fn scalar(&mut self) -> Result<Scalar, ProofError> {
        Option::from(Scalar::from_repr(self.bytes::<SCALAR_BYTES>()?.into()))
            .ok_or(ProofError::Scalar)
    }

    /// Reads a point of the curve in its only valid encoding. The group has prime order, so that no
    /// point on the curve is in a small subgroup.
    fn point(&mut self) -> Result<Affine, ProofError> {
        let bytes = self.bytes::<POINT_BYTES>()?;
        let point: Option<Affine> = Affine::from_bytes(&bytes.into()).into();
        let point = point.filter(|point| !bool::from(point.is_identity()));
        point.filter(|point| point.to_bytes().as_ref() == bytes).ok_or(ProofError::Point)
    }
}
