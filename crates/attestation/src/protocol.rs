//! What a prover and an attestor say to each other, over TLS 1.3 (docs/attestor-protocol.md).
//!
//! Each message is its length in 4 bytes, the highest first, and an array in the one CBOR form that
//! it can have. Secrets go one way, and after the receipt alone: from then on nothing that anybody
//! learns can change what was recorded.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use minicbor::{Decode, Encode};

use crate::{
    signed::{BadAttestation, read, write},
    zktls::Reveal,
};

/// The protocol's name in TLS (RFC 7301).
pub const ALPN: &[u8] = b"avouch-attestor/2";
/// What the channel's number is exported from TLS under (RFC 8446, section 7.5).
pub const EXPORTER: &[u8] = b"EXPORTER-avouch-attestor-2";
/// The most bytes of a connection that one message carries.
pub const LONGEST_DATA: usize = 16 * 1024;
/// The longest message of a prover, and of an attestor.
pub const LONGEST_FROM_PROVER: usize = 1024 * 1024;
pub const LONGEST_FROM_ATTESTOR: usize = 9 * 1024 * 1024;

const CHANNEL: &[u8] = b"avouch/attestor-channel/v1\0";
const RECEIPT: &[u8] = b"avouch/attestor-receipt/v1\0";

/// What a prover says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromProver {
    /// First: what is to be attested.
    #[n(0)]
    Open(#[n(0)] Open),
    /// Bytes for the server.
    #[n(1)]
    Data(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// The connection is over.
    #[n(2)]
    End,
    /// After the receipt: what opens the recording.
    #[n(3)]
    Reveal(#[n(0)] Telling),
}

/// What an attestor says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FromAttestor {
    /// First, unasked: who it is.
    #[n(0)]
    Welcome(#[n(0)] Welcome),
    /// The way to the server is open.
    #[n(1)]
    Opened(#[n(0)] Opened),
    /// Bytes from the server, the records of TLS whole; none where it has closed its connection.
    #[n(2)]
    Data(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// The connection is over, and this is what was recorded.
    #[n(3)]
    Receipt(#[n(0)] SignedReceipt),
    #[n(4)]
    Attested(#[n(0)] Attested),
    /// Last: why there is no attestation, now or later.
    #[n(5)]
    Refused(#[n(0)] String),
    /// Last: for what there was no time or no place. The same order may succeed later, in a new
    /// connection.
    #[n(6)]
    Busy(#[n(0)] String),
}

/// Proves that the channel's other end holds an attestor's key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Welcome {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub public_key: [u8; 32],
    /// When the key may sign, in milliseconds since 1970.
    #[n(1)]
    pub valid_from: u64,
    #[n(2)]
    pub valid_to: u64,
    #[cbor(n(3), with = "minicbor::bytes")]
    signature: [u8; 64],
}

impl Welcome {
    /// For the channel with this exported number.
    #[must_use]
    pub fn new(key: &SigningKey, (valid_from, valid_to): (u64, u64), channel: &[u8; 32]) -> Self {
        let public_key = key.verifying_key().to_bytes();
        let signature = key.sign(&channel_part(channel, valid_from, valid_to)).to_bytes();
        Self { public_key, valid_from, valid_to, signature }
    }

    /// Whether it was said by the key's holder, in this channel.
    #[must_use]
    pub fn holds(&self, channel: &[u8; 32]) -> bool {
        let message = channel_part(channel, self.valid_from, self.valid_to);
        is_signed(&self.public_key, &message, &self.signature)
    }
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Open {
    /// [`crate::descriptor::Descriptor::sha256`] of one that the attestor allows.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub descriptor: [u8; 32],
    /// [`crate::descriptor::Mode::number`]
    #[n(1)]
    pub mode: u8,
    /// [`crate::attest::session_name`], never the same again.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub session: [u8; 32],
    /// [`crate::attest::partner_name`]
    #[cbor(n(3), with = "minicbor::bytes")]
    pub partner: [u8; 32],
    /// Repeated in the attestation: up to [`crate::body::MAX_CHALLENGE_BYTES`], empty for none.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub challenge: Vec<u8>,
    /// What the attestor knows its clients by; empty where it takes everybody.
    #[n(5)]
    pub token: String,
}

/// The bounds of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Opened {
    /// The attestation's.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub id: [u8; 16],
    /// Milliseconds until it is cut off.
    #[n(1)]
    pub time: u32,
    /// Bytes to the server, and back.
    #[n(2)]
    pub up: u32,
    #[n(3)]
    pub down: u32,
    /// Milliseconds that the prover has from the receipt to what opens the recording.
    #[n(4)]
    pub proving: u32,
    /// Milliseconds that the attestor takes from there to the attestation, at most.
    #[n(5)]
    pub examining: u32,
}

/// What was recorded. The prover holds it against what it saw itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Receipt {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub id: [u8; 16],
    /// [`crate::attest::capture_hash`]
    #[cbor(n(1), with = "minicbor::bytes")]
    pub capture: [u8; 32],
    #[n(2)]
    pub client_length: u32,
    #[n(3)]
    pub server_length: u32,
    /// Milliseconds since 1970.
    #[n(4)]
    pub opened: u64,
    #[n(5)]
    pub closed: u64,
    /// Of the server, 4 or 16 bytes.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub address: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct SignedReceipt {
    #[n(0)]
    pub receipt: Receipt,
    #[cbor(n(1), with = "minicbor::bytes")]
    signature: [u8; 64],
}

impl SignedReceipt {
    /// # Errors
    /// Where it cannot be written, which each can.
    pub fn new(receipt: Receipt, key: &SigningKey) -> Result<Self, BadAttestation> {
        let signature = key.sign(&receipt_part(&receipt)?).to_bytes();
        Ok(Self { receipt, signature })
    }

    #[must_use]
    pub fn is_by(&self, public_key: &[u8; 32]) -> bool {
        receipt_part(&self.receipt)
            .is_ok_and(|message| is_signed(public_key, &message, &self.signature))
    }
}

/// What opens a recording, by mode.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Telling {
    /// The handshake secret: everything.
    #[n(0)]
    FullReveal(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// With a proof for what is hidden: `zktls-request` and `zktls-full`.
    #[n(1)]
    Proved(#[n(0)] Reveal),
}

/// The end: what was signed, and what opens it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Attested {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub attestation: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub disclosure: Vec<u8>,
    /// [`crate::tlog::LogProof`]: the attestation's place in the attestor's log, in a checkpoint
    /// that the attestation's key signed too.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub inclusion: Vec<u8>,
}

macro_rules! messages {
    ($($message:ty),+) => { $(
        impl $message {
            /// Without the length before it.
            ///
            /// # Errors
            /// Where it cannot be written, which each can.
            pub fn write(&self) -> Result<Vec<u8>, BadAttestation> {
                write(self)
            }

            /// # Errors
            /// Where it is none, or not in its one form.
            pub fn read(bytes: &[u8]) -> Result<Self, BadAttestation> {
                read(bytes)
            }
        }
    )+ };
}

messages!(FromProver, FromAttestor);

fn channel_part(channel: &[u8; 32], valid_from: u64, valid_to: u64) -> Vec<u8> {
    [CHANNEL, channel, &valid_from.to_be_bytes(), &valid_to.to_be_bytes()].concat()
}

fn receipt_part(receipt: &Receipt) -> Result<Vec<u8>, BadAttestation> {
    Ok([RECEIPT, &write(receipt)?].concat())
}

fn is_signed(public_key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public_key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}
