//! Bytes and words as bits in a circuit, and their conversion to its public values.

use bellpepper_core::{
    ConstraintSystem, LinearCombination, SynthesisError,
    boolean::{AllocatedBit, Boolean},
    num::AllocatedNum,
};
use ff::PrimeField;

/// Number of bits of one public value: 16 bytes.
const PUBLIC_VALUE_BITS: usize = 128;

/// Allocates bytes as bits, big-endian within each byte as for SHA-256.
pub(super) fn big_endian<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &str,
    bytes: &[u8],
) -> Result<Vec<Boolean>, SynthesisError> {
    bits(cs, name, bytes, [7, 6, 5, 4, 3, 2, 1, 0])
}

/// Allocates bytes as bits, little-endian within each byte as for `ChaCha20`.
pub(super) fn little_endian<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &str,
    bytes: &[u8],
) -> Result<Vec<Boolean>, SynthesisError> {
    bits(cs, name, bytes, [0, 1, 2, 3, 4, 5, 6, 7])
}

fn bits<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &str,
    bytes: &[u8],
    order: [u8; 8],
) -> Result<Vec<Boolean>, SynthesisError> {
    let all = bytes.iter().flat_map(|byte| order.map(|shift| byte >> shift & 1 == 1));
    let bit = |(at, bit)| {
        let cs = cs.namespace(|| format!("{name} {at}"));
        AllocatedBit::alloc(cs, Some(bit)).map(Boolean::from)
    };
    all.enumerate().map(bit).collect()
}

/// Allocates one bit.
pub(super) fn single<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &'static str,
    bit: bool,
) -> Result<Boolean, SynthesisError> {
    AllocatedBit::alloc(cs.namespace(|| name), Some(bit)).map(Boolean::from)
}

/// Returns the bits of known bytes, big-endian within each byte.
pub(super) fn constant(bytes: &[u8]) -> Vec<Boolean> {
    let bit = |byte: &u8, shift: u8| Boolean::constant(byte >> shift & 1 == 1);
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |shift| bit(byte, shift))).collect()
}

/// Reverses the bits within each byte.
pub(super) fn reverse_bits(bits: &[Boolean]) -> Vec<Boolean> {
    bits.chunks(8).flat_map(|byte| byte.iter().rev().cloned()).collect()
}

/// Publishes bits as public values, little-endian within each byte.
pub(super) struct Publisher {
    count: usize,
}

impl Publisher {
    pub(super) const fn new() -> Self {
        Self { count: 0 }
    }

    pub(super) fn publish<F: PrimeField, CS: ConstraintSystem<F>>(
        &mut self,
        cs: &mut CS,
        bits: &[Boolean],
    ) -> Result<(), SynthesisError> {
        for chunk in bits.chunks(PUBLIC_VALUE_BITS) {
            self.count += 1;
            let count = self.count;
            let values: Option<Vec<_>> = chunk.iter().map(Boolean::get_value).collect();
            let number =
                AllocatedNum::alloc_input(cs.namespace(|| format!("public {count}")), || {
                    let values = values.ok_or(SynthesisError::AssignmentMissing)?;
                    Ok(field(values.into_iter()))
                })?;
            let mut sum = LinearCombination::<F>::zero();
            let mut weight = F::ONE;
            for bit in chunk {
                sum = sum + &bit.lc(CS::one(), weight);
                weight = weight.double();
            }
            cs.enforce(
                || format!("public {count} is its bits"),
                |_| sum,
                |one| one + CS::one(),
                |number_| number_ + number.get_variable(),
            );
        }
        Ok(())
    }
}

/// Returns the field element of the bytes of one public value.
pub(super) fn packed<F: PrimeField>(bytes: &[u8]) -> F {
    let bits = bytes.iter().flat_map(|byte| (0..8).map(move |shift| byte >> shift & 1 == 1));
    field(bits.collect::<Vec<_>>().into_iter())
}

/// Returns the field element of these bits, the lowest first.
fn field<F: PrimeField>(bits: impl DoubleEndedIterator<Item = bool>) -> F {
    bits.rev().fold(F::ZERO, |number, bit| number.double() + if bit { F::ONE } else { F::ZERO })
}
