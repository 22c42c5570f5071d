//! The signed part of an attestation: an array of a fixed order in deterministic CBOR (RFC 8949,
//! section 4.2), so that its hash identifies it.

use minicbor::{Decode, Encode};

/// The version of this format.
pub const VERSION: u8 = 2;
/// Maximum length of a challenge.
pub const MAX_CHALLENGE_BYTES: usize = 64;
/// The algorithm number of Ed25519 (RFC 8032).
pub const ED25519: u8 = 1;

/// An attestation without its signature.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Body {
    #[n(0)]
    pub version: u8,
    /// Chosen by the attestor.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub id: [u8; 16],
    /// [`crate::signed::key_id`] of the attestor's key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub issuer: [u8; 32],
    #[n(3)]
    pub algorithm: u8,
    #[n(4)]
    pub mode: u8,
    /// A hash of the session's identifier with a salt that the service keeps.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub session: [u8; 32],
    /// [`crate::attest::partner_hash`]: a hash of the partner's identifier with the same salt.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub partner: [u8; 32],
    /// Number of connections that the attestor opened for this challenge, or for this session if
    /// the challenge is empty, including this one. The attestor counts them.
    #[n(7)]
    pub attempt: u32,
    /// The partner's challenge, up to [`MAX_CHALLENGE_BYTES`]; empty if it set none.
    #[cbor(n(8), with = "minicbor::bytes")]
    pub challenge: Vec<u8>,
    #[n(9)]
    pub descriptor: DescriptorReference,
    #[n(10)]
    pub server: AttestedServer,
    #[n(11)]
    pub tls: AttestedTls,
    #[n(12)]
    pub time: AttestationTimes,
    #[n(13)]
    pub capture: CaptureHash,
    #[n(14)]
    pub request: AttestedRequest,
    #[n(15)]
    pub response: AttestedResponse,
    /// In the order of the descriptor.
    #[n(16)]
    pub claims: Vec<AttestedClaim>,
    #[n(17)]
    pub proof: ProofSummary,
    #[n(18)]
    pub attestor: AttestorBuild,
    #[n(19)]
    pub log: LogPosition,
    /// Random bytes, which prevent guessing the content from the hash.
    #[cbor(n(20), with = "minicbor::bytes")]
    pub blinding: [u8; 32],
}

/// The descriptor of the request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct DescriptorReference {
    #[n(0)]
    pub platform: u32,
    #[n(1)]
    pub version: u32,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
}

/// The server that the attestor connected to, and how.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestedServer {
    #[n(0)]
    pub name: String,
    #[n(1)]
    pub port: u16,
    /// 4 or 16 bytes.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub address: Vec<u8>,
    /// 0: directly; 1: through a proxy that the attestor contracted itself.
    #[n(3)]
    pub egress: u8,
    /// 0: resolved by the attestor's own resolver.
    #[n(4)]
    pub resolver: u8,
}

/// The negotiated parameters of the connection, and the server's authentication.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestedTls {
    #[n(0)]
    pub version: u16,
    #[n(1)]
    pub suite: u16,
    #[n(2)]
    pub group: u16,
    #[n(3)]
    pub scheme: u16,
    #[cbor(n(4), with = "minicbor::bytes")]
    pub leaf_key_sha256: [u8; 32],
    #[cbor(n(5), with = "minicbor::bytes")]
    pub chain_sha256: [u8; 32],
    #[cbor(n(6), with = "minicbor::bytes")]
    pub roots_sha256: [u8; 32],
    #[cbor(n(7), with = "minicbor::bytes")]
    pub transcript: Vec<u8>,
}

/// The attestor's clock, in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestationTimes {
    #[n(0)]
    pub opened: u64,
    #[n(1)]
    pub closed: u64,
    #[n(2)]
    pub signed: u64,
}

/// Lengths and hash of the recorded connection.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct CaptureHash {
    #[n(0)]
    pub client_length: u32,
    #[n(1)]
    pub server_length: u32,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
}

/// The request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestedRequest {
    #[n(0)]
    pub method: String,
    #[n(1)]
    pub target: String,
    #[n(2)]
    pub length: u32,
    #[n(3)]
    pub hidden: Vec<HiddenHeaderPart>,
    #[cbor(n(4), with = "minicbor::bytes")]
    pub root: [u8; 32],
}

/// A part of the request that is hidden from the attestor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct HiddenHeaderPart {
    #[n(0)]
    pub start: u32,
    #[n(1)]
    pub length: u32,
    #[n(2)]
    pub header: String,
}

/// The response.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestedResponse {
    #[n(0)]
    pub status: u16,
    #[n(1)]
    pub content_type: String,
    #[n(2)]
    pub head_length: u32,
    /// Without the chunk framing.
    #[n(3)]
    pub body_length: u32,
    #[cbor(n(4), with = "minicbor::bytes")]
    pub root: [u8; 32],
    /// Number of bytes of head and body that are hidden from the attestor.
    #[n(5)]
    pub hidden: u32,
}

/// A value of the response.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestedClaim {
    #[n(0)]
    pub field: String,
    #[n(1)]
    pub pointer: String,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub commitment: [u8; 32],
}

/// The zero-knowledge proof about the hidden parts; empty if nothing is hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct ProofSummary {
    #[n(0)]
    pub system: String,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub circuit: [u8; 32],
    #[cbor(n(2), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
    #[cbor(n(3), with = "minicbor::bytes")]
    pub public_sha256: [u8; 32],
}

/// The attestor's program.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct AttestorBuild {
    #[n(0)]
    pub version: String,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
}

/// The position in the attestor's log, which is a hash chain.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct LogPosition {
    #[n(0)]
    pub index: u64,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub previous_hash: [u8; 32],
}
