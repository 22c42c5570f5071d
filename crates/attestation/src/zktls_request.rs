//! Everything opened but the credentials in the request: the witness is given the secrets of the
//! handshake and of what the server said, which open nothing of what the client said, and a proof
//! in zero knowledge for that.
//!
//! **What the witness does not get:** the handshake secret itself, the master secret, the client's
//! traffic secret and key. None of them follows from what it gets, since HKDF runs one way.

use std::ops::Range;

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit as _, StreamCipher as _},
};
use minicbor::{Decode, Encode, bytes::ByteArray};
use poly1305::{
    Poly1305,
    universal_hash::{KeyInit as _, UniversalHash as _},
};
use subtle::ConstantTimeEq as _;

use crate::{
    body::Proof,
    descriptor::{Descriptor, Mode},
    full_reveal::{Capture, Findings},
    refusal::Refusal,
    tls::{
        ALERT, APPLICATION_DATA,
        flight::{self, Trust, sha256},
        hello,
        open::{CLOSE_NOTIFY, client_data, nonce, server_data},
        schedule::Suite,
        wire::{Record, Wire},
    },
    zk::{BLOCK, Block, Statement, ZkBackend},
};

/// The only suite whose stream is proved.
const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;
const TAG: usize = 16;

/// What a prover tells once the connection is over.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Reveal {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub server_handshake: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    pub client_handshake: [u8; 32],
    #[cbor(n(2), with = "minicbor::bytes")]
    pub server_data: [u8; 32],
    #[cbor(n(3), with = "minicbor::bytes")]
    pub client_iv: [u8; 12],
    /// By record of the client's data: the key of its tag, the beginning of its stream.
    #[n(4)]
    pub tag_keys: Vec<ByteArray<32>>,
    /// What the client said, with anything in the place of what is hidden.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub said: Vec<u8>,
    /// In their order, none empty, none touching another.
    #[n(6)]
    pub hidden: Vec<Range<usize>>,
    #[cbor(n(7), with = "minicbor::bytes")]
    pub proof: Vec<u8>,
}

/// Examines a connection that is over.
///
/// # Errors
/// The first check that fails.
pub fn examine(
    capture: Capture<'_>,
    reveal: &Reveal,
    backend: &dyn ZkBackend,
    descriptor: &Descriptor,
    trust: &Trust<'_>,
) -> Result<Findings, Refusal> {
    if !descriptor.modes.contains(&Mode::ZktlsRequest) {
        return Err(Refusal::Mode);
    }
    let wire = Wire::read(capture.client, capture.server)?;
    let agreed = hello::agreed(wire.client.hello, wire.server.hello, &descriptor.host, &[SUITE])?;
    let server = flight::server(&wire, SUITE, &reveal.server_handshake, &descriptor.host, trust)?;
    let sealed = &wire.client.sealed;
    flight::client_finished(SUITE, &reveal.client_handshake, sealed, &server.transcript)?;
    let statement = statement(&wire, reveal, &server.transcript)?;
    let rest = wire.server.sealed.get(server.records..).unwrap_or_default();
    let answered = server_data(SUITE, &reveal.server_data, rest)?;
    backend.verify(&statement, &reveal.proof)?;
    let (said, hidden) = (shown(reveal), &reveal.hidden);
    let found = Findings::of((agreed, server), said, hidden, &answered, descriptor)?;
    let proof = Proof {
        system: backend.name().to_owned(),
        circuit: backend.circuit(statement.blocks.len())?,
        sha256: sha256(&reveal.proof),
        public_sha256: sha256(&statement.public().concat()),
    };
    Ok(Findings { proof: Some(proof), ..found })
}

/// What a prover who has the handshake secret tells of a connection, in which these parts of what
/// the client said are hidden. Seconds, and gigabytes.
///
/// # Errors
/// Where the connection is not one that [`examine`] would take, or cannot be proved.
pub fn reveal(
    capture: Capture<'_>,
    secret: &[u8; 32],
    hide: impl FnOnce(&[u8]) -> Vec<Range<usize>>,
    backend: &dyn ZkBackend,
    host: &str,
    trust: &Trust<'_>,
) -> Result<Reveal, Refusal> {
    let wire = Wire::read(capture.client, capture.server)?;
    hello::agreed(wire.client.hello, wire.server.hello, host, &[SUITE])?;
    let hellos = SUITE.hash(&[wire.client.hello, wire.server.hello]);
    let handshake = SUITE.handshake_traffic(secret, &hellos);
    let server = flight::server(&wire, SUITE, &handshake.server, host, trust)?;
    let data = SUITE.application_traffic(secret, &server.transcript);
    let records = wire.client.sealed.get(1..).unwrap_or_default();
    let said = client_data(SUITE, &data.client, records)?;
    let hidden = hide(&said);
    let client_iv = SUITE.iv(&data.client).ok_or(Refusal::SecretLength)?;
    let key = array(&SUITE.expand(&data.client, "key", &[], 32))?;
    let tag_key = |sequence| {
        let mut stream = [0; 32];
        ChaCha20::new(&key.into(), &nonce(client_iv, sequence).into()).apply_keystream(&mut stream);
        stream
    };
    let mut reveal = Reveal {
        server_handshake: array(&handshake.server)?,
        client_handshake: array(&handshake.client)?,
        server_data: array(&data.server)?,
        client_iv,
        tag_keys: (0..).zip(records).map(|(sequence, _)| tag_key(sequence).into()).collect(),
        said,
        hidden,
        proof: vec![],
    };
    reveal.said = shown(&reveal);
    let statement = statement(&wire, &reveal, &server.transcript)?;
    reveal.proof = backend.prove(&statement, secret)?;
    Ok(reveal)
}

/// What has to be proved, made of what was recorded; of the prover's words only those that the
/// proof covers.
fn statement(wire: &Wire<'_>, reveal: &Reveal, transcript: &[u8]) -> Result<Statement, Refusal> {
    let records = wire.client.sealed.get(1..).unwrap_or_default();
    if reveal.tag_keys.len() != records.len() {
        return Err(Refusal::Reveal);
    }
    let mut end = 0;
    for hidden in &reveal.hidden {
        if hidden.is_empty() || hidden.start < end || hidden.end > reveal.said.len() {
            return Err(Refusal::Reveal);
        }
        // One byte at least is between two, so that there is one way alone to tell them.
        end = hidden.end.saturating_add(1);
    }
    let (said, mut at, mut blocks) = (shown(reveal), 0, vec![]);
    for (sequence, (record, tag_key)) in (0_u64..).zip(records.iter().zip(&reveal.tag_keys)) {
        let last = usize::try_from(sequence).is_ok_and(|sequence| sequence + 1 == records.len());
        let ciphertext = tagged(record, tag_key).ok_or(Refusal::Tag(sequence))?;
        let plain = if last {
            // A client says that it has said all, whatever its record is said to hold.
            [CLOSE_NOTIFY.as_slice(), &[ALERT]].concat()
        } else {
            let length = ciphertext.len().checked_sub(1).filter(|length| *length > 0);
            let length = length.ok_or(Refusal::EmptyData)?;
            let shown = said.get(at..at + length).ok_or(Refusal::Reveal)?;
            [shown, &[APPLICATION_DATA]].concat()
        };
        if plain.len() != ciphertext.len() {
            return Err(Refusal::InnerType(ALERT));
        }
        // The type of what a record holds is never hidden.
        let content = if last { 0 } else { ciphertext.len() - 1 };
        let is_hidden = |place: usize| {
            place < content && reveal.hidden.iter().any(|hidden| hidden.contains(&(at + place)))
        };
        let nonce = nonce(reveal.client_iv, sequence);
        blocks.push(tag_block(nonce, tag_key));
        blocks.extend(data_blocks(nonce, ciphertext, &plain, is_hidden));
        at += content;
    }
    if at != reveal.said.len() {
        return Err(Refusal::Reveal);
    }
    Ok(Statement {
        hellos: array(&SUITE.hash(&[wire.client.hello, wire.server.hello]))?,
        transcript: array(transcript)?,
        server_handshake: reveal.server_handshake,
        client_handshake: reveal.client_handshake,
        server_data: reveal.server_data,
        client_iv: reveal.client_iv,
        blocks,
    })
}

/// The first block of a record's stream: half of it is the key of the tag (RFC 8439, section 2.6).
fn tag_block(nonce: [u8; 12], tag_key: &[u8; 32]) -> Block {
    let mut plain = [0; BLOCK];
    for (place, byte) in plain.iter_mut().zip(tag_key) {
        *place = *byte;
    }
    Block { nonce, opened: u64::from(u32::MAX), plain, ..Block::BLANK }
}

fn data_blocks(
    nonce: [u8; 12],
    ciphertext: &[u8],
    plain: &[u8],
    is_hidden: impl Fn(usize) -> bool,
) -> Vec<Block> {
    let parts = ciphertext.chunks(BLOCK).zip(plain.chunks(BLOCK)).enumerate();
    let block = |(part, (ciphertext, plain)): (usize, (&[u8], &[u8]))| {
        let counter = u32::try_from(part + 1).unwrap_or(u32::MAX);
        let mut block = Block { nonce, counter, ..Block::BLANK };
        let places = block.ciphertext.iter_mut().zip(&mut block.plain);
        let bytes = ciphertext.iter().zip(plain);
        for (at, ((cipher, shown), (own, plain))) in places.zip(bytes).enumerate() {
            *cipher = *own;
            if is_hidden(part * BLOCK + at) {
                block.printable |= 1 << at;
            } else {
                block.opened |= 1 << at;
                *shown = *plain;
            }
        }
        block
    };
    parts.map(block).collect()
}

/// A record's ciphertext, where its tag (RFC 8439, section 2.8) is that of this key.
fn tagged<'a>(record: &Record<'a>, key: &[u8; 32]) -> Option<&'a [u8]> {
    let (ciphertext, tag) = record.body.split_at_checked(record.body.len().checked_sub(TAG)?)?;
    let mut mac = Poly1305::new(key.into());
    mac.update_padded(&record.header);
    mac.update_padded(ciphertext);
    let lengths = [record.header.len(), ciphertext.len()].map(u64::try_from);
    let [header, data] = lengths.map(|length| length.unwrap_or(u64::MAX).to_le_bytes());
    mac.update_padded(&[header, data].concat());
    bool::from(mac.finalize().as_slice().ct_eq(tag)).then_some(ciphertext)
}

/// What is shown of what the client said: zeros where it is hidden, whatever was told.
fn shown(reveal: &Reveal) -> Vec<u8> {
    let mut said = reveal.said.clone();
    for hidden in &reveal.hidden {
        said.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    said
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Refusal> {
    bytes.try_into().map_err(|_| Refusal::SecretLength)
}
