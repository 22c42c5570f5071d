//! Constraints on the classes of hidden bytes: each class excludes the bytes that would end the
//! value which contains the byte, so that hidden bytes cannot change how the rest is parsed.

#[cfg(test)]
mod tests;

use bellpepper_core::{ConstraintSystem, LinearCombination, SynthesisError, boolean::Boolean};
use ff::PrimeField;

/// A hidden or revealed byte, and the classes that it must belong to.
pub(super) struct Classes<'a> {
    /// Little-endian.
    bits: [&'a Boolean; 8],
    printable: &'a Boolean,
    /// For text and for scalars; `None` if no response is proved.
    json: Option<(&'a Boolean, &'a Boolean)>,
}

impl<'a> Classes<'a> {
    /// Takes a byte's bits, and its masks in the order of [`super::BlockInputs::masks`].
    pub(super) fn of(
        byte: &'a [Boolean],
        masks: &mut impl Iterator<Item = &'a Boolean>,
    ) -> Option<Self> {
        let [zero, one, two, three, four, five, six, seven] = byte else { return None };
        let bits = [zero, one, two, three, four, five, six, seven];
        let printable = masks.next()?;
        Some(Self { bits, printable, json: masks.next().zip(masks.next()) })
    }

    /// # Errors
    /// An error of the constraint system.
    pub(super) fn enforce<F: PrimeField, CS: ConstraintSystem<F>>(
        &self,
        cs: &mut CS,
    ) -> Result<(), SynthesisError> {
        let [.., five, six, seven] = self.bits;
        let mut and = Products { cs, count: 0 };
        // 0x00 to 0x3f, and of these 0x00 to 0x1f.
        let low = and.of(&seven.not(), &six.not())?;
        let control = and.of(&low, &five.not())?;
        let Some((text, scalar)) = self.json else {
            forbid(and.cs, "printable", self.printable, &[&control]);
            return Ok(());
        };
        let [zero, one, two, three, four, ..] = self.bits;
        // 0x20 to 0x2f, 0x30 to 0x3f, 0x40 to 0x7f.
        let third = and.of(&low, five)?;
        let signs = and.of(&third, &four.not())?;
        let digits = and.of(&third, four)?;
        let letters = and.of(&seven.not(), six)?;
        // The lower four bits.
        let neither = and.of(&one.not(), &zero.not())?;
        let twelve = and.of(two, &neither)?;
        let second = and.of(one, &zero.not())?;
        let second = and.of(&second, &two.not())?;
        let second = and.of(&second, &three.not())?;
        let quotation_mark = and.of(&signs, &second)?;
        let high = and.of(three, four)?;
        let backslash = and.of(&letters, &five.not())?;
        let backslash = and.of(&backslash, &high)?;
        let backslash = and.of(&backslash, &twelve)?;
        // `(` to `/` without the comma.
        let sign = and.of(&signs, three)?;
        let sign = and.of(&sign, &twelve.not())?;
        // `0` to `9`.
        let six_at_least = and.of(&two.not(), &one.not())?.not();
        let ten = and.of(three, &six_at_least)?;
        let digit = and.of(&digits, &ten.not())?;
        // `@` to `Z` and `` ` `` to `z`: the five lowest bits are at most 26.
        let three_at_least = and.of(one, zero)?;
        let eleven = and.of(&two.not(), &three_at_least.not())?.not();
        let bracket = and.of(&high, &eleven)?;
        let letter = and.of(&letters, &bracket.not())?;
        let cs = and.cs;
        forbid(cs, "printable", self.printable, &[&control]);
        forbid(cs, "text", text, &[&control, &quotation_mark, &backslash]);
        // The three conditions exclude each other, so that their sum is one if one of them holds.
        let sum = sum::<F, CS>(&[&sign, &digit, &letter]);
        cs.enforce(
            || "scalar",
            |zero| zero + CS::one() - &sum,
            |_| scalar.lc(CS::one(), F::ONE),
            |zero| zero,
        );
        Ok(())
    }
}

/// Constrains that none of these conditions holds if the mask is set. They must exclude each other.
fn forbid<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &'static str,
    mask: &Boolean,
    these: &[&Boolean],
) {
    let sum = sum::<F, CS>(these);
    cs.enforce(|| name, |_| sum, |_| mask.lc(CS::one(), F::ONE), |zero| zero);
}

fn sum<F: PrimeField, CS: ConstraintSystem<F>>(these: &[&Boolean]) -> LinearCombination<F> {
    let none = LinearCombination::zero();
    these.iter().fold(none, |sum, this| sum + &this.lc(CS::one(), F::ONE))
}

/// Products of bits, each in its own namespace.
struct Products<'a, CS> {
    cs: &'a mut CS,
    count: usize,
}

impl<CS> Products<'_, CS> {
    fn of<F: PrimeField>(
        &mut self,
        one: &Boolean,
        other: &Boolean,
    ) -> Result<Boolean, SynthesisError>
    where
        CS: ConstraintSystem<F>,
    {
        self.count += 1;
        let count = self.count;
        Boolean::and(self.cs.namespace(|| format!("product {count}")), one, other)
    }
}
