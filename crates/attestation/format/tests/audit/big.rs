//! Integers longer than the field's order, for sums that must not wrap around it.

use ff::{Field as _, PrimeField as _};

use crate::Scalar;

/// A number below 2^320; the highest limb comes first, so that the derived order is the numerical
/// one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Big([u64; 5]);

impl Big {
    /// Returns the smaller one of a coefficient and its negative, and whether it is the negative.
    pub(crate) fn of(weight: Scalar) -> (bool, Self) {
        let [own, negative] = [weight, -weight].map(Self::plain);
        if own <= negative { (false, own) } else { (true, negative) }
    }

    fn plain(value: Scalar) -> Self {
        let (repr, mut limbs) = (value.to_repr(), [0; 5]);
        for (limb, bytes) in limbs[1..].iter_mut().rev().zip(repr.as_ref().chunks(8)) {
            *limb = u64::from_le_bytes(bytes.try_into().unwrap());
        }
        Self(limbs)
    }

    pub(crate) fn order() -> Self {
        Self::plain(-Scalar::ONE).plus(Self::plain(Scalar::ONE))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let (mut sum, mut carry) = ([0; 5], false);
        for at in (0..5).rev() {
            let (limb, first) = self.0[at].overflowing_add(other.0[at]);
            let (limb, second) = limb.overflowing_add(u64::from(carry));
            (sum[at], carry) = (limb, first || second);
        }
        assert!(!carry, "a sum of fewer than 2^64 numbers below 2^256");
        Self(sum)
    }

    pub(crate) fn times_2_to_the_128(self) -> Option<Self> {
        let [0, 0, first, second, third] = self.0 else { return None };
        Some(Self([first, second, third, 0, 0]))
    }

    pub(crate) fn power_of_two(self) -> u32 {
        let zeros = self.0.iter().rev().take_while(|limb| **limb == 0).count();
        let limb = self.0.iter().rev().find(|limb| **limb != 0).unwrap();
        64 * u32::try_from(zeros).unwrap() + limb.trailing_zeros()
    }
}
