//! The circuit: derives the keys from the hidden handshake secret, and from them every revealed
//! byte.

use bellpepper::gadgets::{multieq::MultiEq, uint32::UInt32};
use bellpepper_core::{ConstraintSystem, SynthesisError, boolean::Boolean};
use ff::PrimeField;

use super::{
    BLOCK_BYTES, Block, BlockInputs, ServerData, Side, Statement,
    classes::Classes,
    sha::HmacKey,
    words::{Publisher, big_endian, constant, little_endian, reverse_bits, single},
};
use crate::tls::flight::sha256;

/// "expand 32-byte k" (RFC 8439, section 2.3).
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
/// The quarter rounds of a double round, by the indexes of their words.
const QUARTER_ROUNDS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

/// Synthesizes the circuit for a statement and its handshake secret.
///
/// # Errors
/// An error of the constraint system.
pub fn synthesize<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    statement: &Statement,
    secret: &[u8; 32],
) -> Result<(), SynthesisError> {
    let mut publisher = Publisher::new();
    let secret = big_endian(cs, "handshake secret", secret)?;
    let hellos = big_endian(cs, "hellos", &statement.hellos)?;
    let transcript = big_endian(cs, "transcript", &statement.transcript)?;
    publisher.publish(cs, &reverse_bits(&hellos))?;
    publisher.publish(cs, &reverse_bits(&transcript))?;
    let handshake = HmacKey::new(cs, "handshake", &secret)?;
    let server = handshake.expand(cs, "s hs traffic", &hellos, 32)?;
    publisher.publish(cs, &reverse_bits(&server))?;
    let client = handshake.expand(cs, "c hs traffic", &hellos, 32)?;
    publisher.publish(cs, &reverse_bits(&client))?;
    let derived = handshake.expand(cs, "derived", &constant(&sha256(&[])), 32)?;
    let master = HmacKey::new(cs, "derived", &derived)?.mac(cs, "master", &constant(&[0; 32]))?;
    let master = HmacKey::new(cs, "master", &master)?;
    let server = master.expand(cs, "s ap traffic", &transcript, 32)?;
    let server = match statement.server {
        ServerData::TrafficSecret(_) => {
            publisher.publish(cs, &reverse_bits(&server))?;
            None
        }
        ServerData::Proved(_) => Some(stream_key(cs, "server", &server, &mut publisher)?),
    };
    let client = master.expand(cs, "c ap traffic", &transcript, 32)?;
    let client = stream_key(cs, "client", &client, &mut publisher)?;
    let keys = Keys { client, server };
    for (at, block) in statement.blocks.iter().enumerate() {
        let mut cs = cs.namespace(|| format!("block {at}"));
        self::block(&mut cs, block, statement.server, &keys, &mut publisher)?;
    }
    Ok(())
}

/// The keys of both streams as bits, little-endian within each byte.
struct Keys {
    client: Vec<Boolean>,
    /// `None` if only the client's stream is proved.
    server: Option<Vec<Boolean>>,
}

/// Derives the key of a stream from a side's traffic secret, and publishes its IV.
fn stream_key<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    side: &str,
    secret: &[Boolean],
    publisher: &mut Publisher,
) -> Result<Vec<Boolean>, SynthesisError> {
    let cs = &mut cs.namespace(|| format!("{side} stream"));
    let secret = HmacKey::new(cs, "secret", secret)?;
    let iv = secret.expand(cs, "iv", &[], 12)?;
    publisher.publish(cs, &reverse_bits(&iv))?;
    Ok(reverse_bits(&secret.expand(cs, "key", &[], 32)?))
}

/// Selects the key of the stream that a block belongs to.
fn selected_key<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    keys: &Keys,
    side: Option<Side>,
    publisher: &mut Publisher,
) -> Result<Vec<UInt32>, SynthesisError> {
    let words = |bits: &[Boolean]| bits.chunks(32).map(UInt32::from_bits).collect();
    let (Some(server), Some(side)) = (&keys.server, side) else { return Ok(words(&keys.client)) };
    let is_server = single(cs, "side", side == Side::Server)?;
    publisher.publish(cs, std::slice::from_ref(&is_server))?;
    let pairs = server.iter().zip(&keys.client).enumerate();
    let bit = |(at, (server, client))| {
        // The "choose" function of SHA-256: the first one if the bit is set, else the second one.
        Boolean::sha256_ch(cs.namespace(|| format!("key {at}")), &is_server, server, client)
    };
    Ok(words(&pairs.map(bit).collect::<Result<Vec<_>, _>>()?))
}

/// Constrains a block: its revealed bytes are the decrypted ciphertext, and bytes that are marked
/// with a class belong to it.
fn block<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    block: &Block,
    server: ServerData,
    keys: &Keys,
    publisher: &mut Publisher,
) -> Result<(), SynthesisError> {
    let BlockInputs { place, side, ciphertext, masks } = block.inputs(server);
    let place = little_endian(cs, "nonce and counter", &place)?;
    publisher.publish(cs, &place)?;
    let key = selected_key(cs, keys, side, publisher)?;
    let ciphertext = little_endian(cs, "ciphertext", &ciphertext)?;
    publisher.publish(cs, &ciphertext)?;
    let masks = little_endian(cs, "masks", &masks)?;
    publisher.publish(cs, &masks)?;
    let words: Vec<_> = place.chunks(32).map(UInt32::from_bits).collect();
    let (nonce, counter) = words.split_at_checked(3).ok_or(SynthesisError::Unsatisfiable)?;
    let stream = chacha20(cs, &key, counter, nonce)?;
    let mut plain = vec![];
    for (at, (stream, cipher)) in stream.iter().zip(&ciphertext).enumerate() {
        plain.push(Boolean::xor(cs.namespace(|| format!("plain {at}")), stream, cipher)?);
    }
    let (opened, classes) =
        masks.split_at_checked(BLOCK_BYTES).ok_or(SynthesisError::Unsatisfiable)?;
    let mut shown = vec![];
    for (at, bit) in plain.iter().enumerate() {
        let mask = opened.get(at / 8).ok_or(SynthesisError::Unsatisfiable)?;
        shown.push(Boolean::and(cs.namespace(|| format!("shown {at}")), bit, mask)?);
    }
    publisher.publish(cs, &shown)?;
    for (at, byte) in plain.chunks(8).enumerate() {
        let cs = &mut cs.namespace(|| format!("byte {at}"));
        let mut masks = classes.iter().skip(at).step_by(BLOCK_BYTES);
        let classes = Classes::of(byte, &mut masks).ok_or(SynthesisError::Unsatisfiable)?;
        classes.enforce(cs)?;
    }
    Ok(())
}

/// Computes one block of the key stream as bits (RFC 8439, section 2.3).
fn chacha20<F: PrimeField, CS: ConstraintSystem<F>>(
    cs: &mut CS,
    key: &[UInt32],
    counter: &[UInt32],
    nonce: &[UInt32],
) -> Result<Vec<Boolean>, SynthesisError> {
    let mut cs = MultiEq::new(cs.namespace(|| "stream"));
    let begin: Vec<_> = CONSTANTS
        .into_iter()
        .map(UInt32::constant)
        .chain(key.iter().chain(counter).chain(nonce).cloned())
        .collect();
    let mut state = begin.clone();
    for round in 0..10 {
        for [a, b, c, d] in QUARTER_ROUNDS {
            for (sum, other, turned, turn) in
                [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]
            {
                let name = format!("{round} {a} {b} {c} {turn}");
                let word = |at: usize| state.get(at).cloned().ok_or(SynthesisError::Unsatisfiable);
                let added = [word(sum)?, word(other)?];
                let added = UInt32::addmany(cs.namespace(|| format!("{name} sum")), &added)?;
                let mixed = word(turned)?.xor(cs.namespace(|| format!("{name} mix")), &added)?;
                if let Some(word) = state.get_mut(sum) {
                    *word = added;
                }
                if let Some(word) = state.get_mut(turned) {
                    *word = mixed.rotr(32 - turn);
                }
            }
        }
    }
    let mut stream = vec![];
    for (at, (word, begin)) in state.into_iter().zip(begin).enumerate() {
        let sum = UInt32::addmany(cs.namespace(|| format!("end {at}")), &[word, begin])?;
        stream.extend(sum.into_bits());
    }
    Ok(stream)
}
