//! The messages between a prover and an attestor, over TLS 1.3 (docs/attestor-protocol.md).
//!
//! Each message has its length in 4 bytes in front, big-endian, and is an array in deterministic
//! CBOR. Secrets are sent in one direction only, and only after the receipt: from then on no
//! knowledge of them can change the recording.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use minicbor::{Decode, Encode};

use crate::{
    signed::{AttestationError, read, write},
    zktls::Reveal,
};

/// The protocol's ALPN identifier (RFC 7301).
pub const ALPN: &[u8] = b"avouch-attestor/2";
/// Label of the exporter for the channel binding (RFC 8446, section 7.5).
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-avouch-attestor-2";
/// Maximum number of connection bytes in one message.
pub const MAX_DATA_BYTES: usize = 16 * 1024;
/// Maximum length of a prover's message, and of an attestor's message.
pub const MAX_PROVER_MESSAGE_BYTES: usize = 1024 * 1024;
pub const MAX_ATTESTOR_MESSAGE_BYTES: usize = 9 * 1024 * 1024;

const CHANNEL_LABEL: &[u8] = b"avouch/attestor-channel/v1\0";
const RECEIPT_LABEL: &[u8] = b"avouch/attestor-receipt/v1\0";

/// The prover's messages.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ProverMessage {
    /// First message: the request for an attestation.
    #[n(0)]
    Open(#[n(0)] OpenRequest),
    /// Bytes for the server.
    #[n(1)]
    Data(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// The connection is closed.
    #[n(2)]
    End,
    /// After the receipt: the secret or the proof that reveals the recording.
    #[n(3)]
    Reveal(#[n(0)] RevealMessage),
}

/// The attestor's messages.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum AttestorMessage {
    /// First message, sent without a request: identifies the attestor.
    #[n(0)]
    Welcome(#[n(0)] Welcome),
    /// The connection to the server is open.
    #[n(1)]
    Opened(#[n(0)] ConnectionLimits),
    /// Bytes from the server, in whole TLS records; empty when it has closed its connection.
    #[n(2)]
    Data(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// The connection is closed, and this was recorded.
    #[n(3)]
    Receipt(#[n(0)] SignedReceipt),
    #[n(4)]
    Attested(#[n(0)] SignedAttestation),
    /// Last message: the reason why there is no attestation, now or later.
    #[n(5)]
    Refused(#[n(0)] String),
    /// Last message: capacity or time is missing. The same request may succeed later, over a new
    /// connection.
    #[n(6)]
    Busy(#[n(0)] String),
}

/// Proves that the peer of the channel holds an attestor's key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Welcome {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub public_key: [u8; 32],
    /// The key's validity period, in milliseconds since 1970.
    #[n(1)]
    pub valid_from: u64,
    #[n(2)]
    pub valid_to: u64,
    #[cbor(n(3), with = "minicbor::bytes")]
    signature: [u8; 64],
}

impl Welcome {
    /// Creates the message for the channel with this channel binding.
    #[must_use]
    pub fn new(key: &SigningKey, (valid_from, valid_to): (u64, u64), channel: &[u8; 32]) -> Self {
        let public_key = key.verifying_key().to_bytes();
        let signature = key.sign(&channel_message(channel, valid_from, valid_to)).to_bytes();
        Self { public_key, valid_from, valid_to, signature }
    }

    /// Returns whether the key's holder sent it in this channel.
    #[must_use]
    pub fn is_bound_to(&self, channel: &[u8; 32]) -> bool {
        let message = channel_message(channel, self.valid_from, self.valid_to);
        is_signed(&self.public_key, &message, &self.signature)
    }
}

/// A request for an attestation.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct OpenRequest {
    /// [`crate::descriptor::Descriptor::sha256`] of a descriptor that the attestor allows.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub descriptor: [u8; 32],
    /// [`crate::descriptor::RevealMode::number`]
    #[n(1)]
    pub mode: u8,
    /// [`crate::attest::session_hash`], used once only.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub session: [u8; 32],
    /// [`crate::attest::partner_hash`]
    #[cbor(n(3), with = "minicbor::bytes")]
    pub partner: [u8; 32],
    /// Repeated in the attestation: up to [`crate::body::MAX_CHALLENGE_BYTES`], empty for none.
    #[cbor(n(4), with = "minicbor::bytes")]
    pub challenge: Vec<u8>,
    /// Token that authenticates the client; empty if the attestor serves every client.
    #[n(5)]
    pub token: String,
}

/// The limits of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ConnectionLimits {
    /// The attestation's identifier.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub id: [u8; 16],
    /// Time limit of the connection in milliseconds.
    #[n(1)]
    pub time: u32,
    /// Maximum number of bytes to the server, and back.
    #[n(2)]
    pub up: u32,
    #[n(3)]
    pub down: u32,
    /// Time limit in milliseconds for the prover, from the receipt to the reveal message.
    #[n(4)]
    pub proving: u32,
    /// Maximum time in milliseconds from the reveal message to the attestation.
    #[n(5)]
    pub examining: u32,
}

/// A summary of the recording. The prover compares it with the bytes that it saw itself.
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
    /// Encoding fails, which does not happen for a receipt.
    pub fn new(receipt: Receipt, key: &SigningKey) -> Result<Self, AttestationError> {
        let signature = key.sign(&receipt_message(&receipt)?).to_bytes();
        Ok(Self { receipt, signature })
    }

    #[must_use]
    pub fn is_signed_by(&self, public_key: &[u8; 32]) -> bool {
        receipt_message(&self.receipt)
            .is_ok_and(|message| is_signed(public_key, &message, &self.signature))
    }
}

/// The secret or proof that reveals a recording, by mode.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RevealMessage {
    /// The handshake secret, which reveals everything.
    #[n(0)]
    FullReveal(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// A proof about the hidden parts: `zktls-request` and `zktls-full`.
    #[n(1)]
    Proved(#[n(0)] Reveal),
}

/// The last message on success: the signed attestation and its disclosure.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct SignedAttestation {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub attestation: Vec<u8>,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub disclosure: Vec<u8>,
    /// [`crate::tlog::LogProof`]: the attestation's inclusion in the attestor's log, in a
    /// checkpoint that the attestation's key cosigned.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub inclusion: Vec<u8>,
}

macro_rules! messages {
    ($($message:ty),+) => { $(
        impl $message {
            /// Encodes the message, without the length in front.
            ///
            /// # Errors
            /// Encoding fails, which does not happen for a message.
            pub fn write(&self) -> Result<Vec<u8>, AttestationError> {
                write(self)
            }

            /// # Errors
            /// It is malformed, or not in deterministic CBOR.
            pub fn read(bytes: &[u8]) -> Result<Self, AttestationError> {
                read(bytes)
            }
        }
    )+ };
}

messages!(ProverMessage, AttestorMessage);

fn channel_message(channel: &[u8; 32], valid_from: u64, valid_to: u64) -> Vec<u8> {
    [CHANNEL_LABEL, channel, &valid_from.to_be_bytes(), &valid_to.to_be_bytes()].concat()
}

fn receipt_message(receipt: &Receipt) -> Result<Vec<u8>, AttestationError> {
    Ok([RECEIPT_LABEL, &write(receipt)?].concat())
}

fn is_signed(public_key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public_key)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}
