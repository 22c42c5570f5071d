//! HMAC with SHA-256 and the labels of TLS 1.3 (RFC 8446, section 7.1), in a circuit.

use bellpepper::gadgets::{sha256::sha256_compression_function, uint32::UInt32};
use bellpepper_core::{ConstraintSystem, SynthesisError, boolean::Boolean};
use ff::PrimeField;

use super::words::constant;

/// Block length of SHA-256 in bits.
const BLOCK_BITS: usize = 512;
/// Initial state of SHA-256 (FIPS 180-4, section 5.3.3).
const INITIAL_STATE: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// An HMAC key, as the states of its inner and outer hash.
pub(super) struct HmacKey {
    inner: Vec<UInt32>,
    outer: Vec<UInt32>,
}

impl HmacKey {
    pub(super) fn new<F: PrimeField, CS: ConstraintSystem<F>>(
        cs: &mut CS,
        name: &str,
        key: &[Boolean],
    ) -> Result<Self, SynthesisError> {
        let begin: Vec<_> = INITIAL_STATE.into_iter().map(UInt32::constant).collect();
        let mut padded = |pad: u8| {
            let pads = constant(&[pad; BLOCK_BITS / 8]);
            let key = key.iter().map(Some).chain(std::iter::repeat(None));
            // With a constant, exclusive or is the bit itself or its negation.
            let bits = pads.into_iter().zip(key).map(|(pad, bit)| match bit {
                Some(bit) if pad.get_value() == Some(true) => bit.not(),
                Some(bit) => bit.clone(),
                None => pad,
            });
            let bits: Vec<_> = bits.collect();
            let cs = cs.namespace(|| format!("{name} with {pad:#x}"));
            sha256_compression_function(cs, &bits, &begin)
        };
        Ok(Self { inner: padded(0x36)?, outer: padded(0x5c)? })
    }

    pub(super) fn mac<F: PrimeField, CS: ConstraintSystem<F>>(
        &self,
        cs: &mut CS,
        name: &str,
        message: &[Boolean],
    ) -> Result<Vec<Boolean>, SynthesisError> {
        let inner = finish(cs, &format!("{name} inner"), &self.inner, message)?;
        finish(cs, &format!("{name} outer"), &self.outer, &inner)
    }

    /// HKDF-Expand-Label, with an output of at most one hash.
    pub(super) fn expand<F: PrimeField, CS: ConstraintSystem<F>>(
        &self,
        cs: &mut CS,
        label: &str,
        context: &[Boolean],
        length: u8,
    ) -> Result<Vec<Boolean>, SynthesisError> {
        let byte = |length: usize| u8::try_from(length).unwrap_or(u8::MAX);
        let name = format!("tls13 {label}");
        let head = [0, length, byte(name.len())];
        let mut info = constant(&head);
        info.extend(constant(name.as_bytes()));
        info.extend(constant(&[byte(context.len() / 8)]));
        info.extend_from_slice(context);
        info.extend(constant(&[1]));
        let mut block = self.mac(cs, label, &info)?;
        block.truncate(8 * usize::from(length));
        Ok(block)
    }
}

/// Hashes the remaining message; its first block is already in the state.
fn finish<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    name: &str,
    state: &[UInt32],
    message: &[Boolean],
) -> Result<Vec<Boolean>, SynthesisError> {
    let length = u64::try_from(message.len() + BLOCK_BITS).unwrap_or(u64::MAX);
    let mut bits = message.to_vec();
    bits.push(Boolean::constant(true));
    while !(bits.len() + 64).is_multiple_of(BLOCK_BITS) {
        bits.push(Boolean::constant(false));
    }
    bits.extend(constant(&length.to_be_bytes()));
    let mut state = state.to_vec();
    for (at, chunk) in bits.chunks(BLOCK_BITS).enumerate() {
        let cs = cs.namespace(|| format!("{name} {at}"));
        state = sha256_compression_function(cs, chunk, &state)?;
    }
    Ok(state.into_iter().flat_map(UInt32::into_bits_be).collect())
}
