//! The Fiat-Shamir transcript: absorbs messages and returns challenges (Keccak-256, by spartan2).

use ff::PrimeField as _;
use spartan2::{
    provider::T256HyraxEngine,
    traits::{
        Engine,
        transcript::{TranscriptEngineTrait as _, TranscriptReprTrait},
    },
};

use super::{Affine, Point, ProofError, Scalar};

pub(super) struct Transcript(<T256HyraxEngine as Engine>::TE);

/// Unmodified bytes.
struct Plain(Vec<u8>);

impl TranscriptReprTrait<Point> for Plain {
    fn to_transcript_bytes(&self) -> Vec<u8> {
        self.0.clone()
    }
}

/// Encodes scalars, each big-endian.
pub(super) fn scalars(values: &[Scalar]) -> Vec<u8> {
    let reversed = |value: &Scalar| {
        let mut bytes = *value.to_repr().inner();
        bytes.reverse();
        bytes
    };
    values.iter().flat_map(reversed).collect()
}

/// Encodes points, each as its coordinates, little-endian.
fn points(points: &[Affine]) -> Vec<u8> {
    let coordinates = points.iter().flat_map(|point| [point.x, point.y]);
    coordinates.flat_map(|value| *value.to_repr().inner()).collect()
}

/// Encodes the commitments to the rows of a matrix.
pub(super) fn rows(rows: &[Affine]) -> Vec<u8> {
    [b"poly_commitment_begin".as_slice(), &points(rows), b"poly_commitment_end"].concat()
}

impl Transcript {
    pub(super) fn new() -> Self {
        Self(<T256HyraxEngine as Engine>::TE::new(b"SpartanZkSNARK"))
    }

    pub(super) fn bytes(&mut self, label: &'static [u8], bytes: Vec<u8>) {
        self.0.absorb(label, &Plain(bytes));
    }

    pub(super) fn scalars(&mut self, label: &'static [u8], values: &[Scalar]) {
        self.bytes(label, scalars(values));
    }

    pub(super) fn points(&mut self, label: &'static [u8], values: &[Affine]) {
        self.bytes(label, points(values));
    }

    pub(super) fn rows(&mut self, label: &'static [u8], values: &[Affine]) {
        self.bytes(label, rows(values));
    }

    pub(super) fn domain(&mut self, name: &'static [u8]) {
        self.0.dom_sep(name);
    }

    pub(super) fn challenge(&mut self, label: &'static [u8]) -> Result<Scalar, ProofError> {
        self.0.squeeze(label).map_err(|_| ProofError::Challenge)
    }

    pub(super) fn challenges(
        &mut self,
        label: &'static [u8],
        count: usize,
    ) -> Result<Vec<Scalar>, ProofError> {
        (0..count).map(|_| self.challenge(label)).collect()
    }

    /// Reduces the claim that a polynomial sums to `claim` over all bits to a claim about its value
    /// at a random point. A round is a polynomial's coefficients in ascending order without the
    /// linear one, which is determined because the values at zero and at one add up to the claim.
    pub(super) fn sum_check<const N: usize>(
        &mut self,
        claim: Scalar,
        rounds: &[[Scalar; N]],
    ) -> Result<(Scalar, Vec<Scalar>), ProofError> {
        let (mut claim, mut point) = (claim, vec![]);
        for round in rounds {
            let (constant, higher) = round.split_first().ok_or(ProofError::Count)?;
            let linear = higher.iter().fold(claim - constant - constant, |left, one| left - one);
            let said = round.iter().flat_map(|value| *value.to_repr().inner()).collect();
            self.bytes(b"p", said);
            let at = self.challenge(b"c")?;
            let higher = higher.iter().rev().fold(Scalar::zero(), |sum, one| (sum + one) * at);
            claim = *constant + (linear + higher) * at;
            point.push(at);
        }
        Ok((claim, point))
    }
}
