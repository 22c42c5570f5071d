//! Hides parts of a connection with a zero-knowledge proof: the credentials in the request, and in
//! `zktls-full` also the parts of the response that no claim names.
//!
//! **The attestor does not receive** the handshake secret itself, the master secret, and the
//! client's traffic secret and key; in `zktls-full` also not those of the server's data. None of
//! them can be computed from the values that it receives, because HKDF is one-way.

mod prover;
mod statement;
mod stream;

use std::ops::Range;

use minicbor::{Decode, Encode, bytes::ByteArray};

use crate::{
    body::ProofSummary,
    descriptor::{Descriptor, RevealMode},
    error::ExaminationError,
    full_reveal::{Capture, Findings, RevealedResponse},
    http::{RedactedBytes, selective},
    tls::{
        decrypt::server_data,
        flight::{self, CertificateTrust, sha256},
        hello::{self, NegotiatedParameters},
        key_schedule::Suite,
        records::RecordStreams,
    },
    zk::{Statement, ZkBackend},
};

pub use self::prover::{HidePolicy, HideRequest, HideResponse, reveal};
use self::statement::{check_length, check_order, statement_of};

/// The only suite whose stream is proved.
const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;

/// The values that a prover reveals once the connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Reveal {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub server_handshake: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    pub client_handshake: [u8; 32],
    #[n(2)]
    pub server: RevealedServerData,
    #[cbor(n(3), with = "minicbor::bytes")]
    pub client_iv: [u8; 12],
    /// By record of the client's data: the one-time key of its tag, which is the start of its key
    /// stream.
    #[n(4)]
    pub tag_keys: Vec<ByteArray<32>>,
    /// The bytes that the client sent, with arbitrary bytes for hidden ones.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub request_bytes: Vec<u8>,
    /// In order, not empty, not adjacent.
    #[n(6)]
    pub hidden: Vec<Range<usize>>,
    #[cbor(n(7), with = "minicbor::bytes")]
    pub proof: Vec<u8>,
}

/// The revealed part of the server's data.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum RevealedServerData {
    /// The traffic secret, which reveals everything.
    #[n(0)]
    TrafficSecret(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]),
    /// Parts, by proof.
    #[n(1)]
    Proved(#[n(0)] Box<PartialResponse>),
}

/// The revealed part of a response with hidden parts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct PartialResponse {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub iv: [u8; 12],
    /// By record of the server after its flight.
    #[n(1)]
    pub records: Vec<RevealedRecord>,
    /// The bytes that the server sent, with arbitrary bytes for hidden ones.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub response_bytes: Vec<u8>,
    /// In order, not empty, not adjacent.
    #[n(3)]
    pub hidden: Vec<Range<usize>>,
}

/// The revealed metadata of a record of the server.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct RevealedRecord {
    /// The type of its content.
    #[n(0)]
    pub kind: u8,
    /// Number of zeros after the content (RFC 8446, section 5.4).
    #[n(1)]
    pub padding: u16,
    /// The one-time key of its tag, which is the start of its key stream.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub tag_key: [u8; 32],
}

impl Reveal {
    /// Returns the mode, which states how much it hides.
    #[must_use]
    pub const fn mode(&self) -> RevealMode {
        match self.server {
            RevealedServerData::TrafficSecret(_) => RevealMode::ZktlsRequest,
            RevealedServerData::Proved(_) => RevealMode::ZktlsFull,
        }
    }
}

/// Examines a closed connection.
///
/// # Errors
/// The first check that fails.
pub fn examine(
    capture: Capture<'_>,
    reveal: &Reveal,
    backend: &dyn ZkBackend,
    descriptor: &Descriptor,
    trust: &CertificateTrust<'_>,
) -> Result<Findings, ExaminationError> {
    let stated = StatedConnection::of(capture, reveal, descriptor, trust)?;
    backend.verify(&stated.statement, &reveal.proof)?;
    stated.found(reveal, backend, descriptor)
}

/// Works like [`examine`] without verifying the proof: for the prover, before or after it computes
/// the proof.
///
/// # Errors
/// The first check that fails.
pub fn examine_unproved(
    capture: Capture<'_>,
    reveal: &Reveal,
    backend: &dyn ZkBackend,
    descriptor: &Descriptor,
    trust: &CertificateTrust<'_>,
) -> Result<Findings, ExaminationError> {
    StatedConnection::of(capture, reveal, descriptor, trust)?.found(reveal, backend, descriptor)
}

/// A connection that agrees with the revealed values, provided that the statement is proved.
struct StatedConnection {
    negotiated: NegotiatedParameters,
    server: flight::AuthenticatedServer,
    answer: RevealedResponse,
    statement: Statement,
}

impl StatedConnection {
    fn of(
        capture: Capture<'_>,
        reveal: &Reveal,
        descriptor: &Descriptor,
        trust: &CertificateTrust<'_>,
    ) -> Result<Self, ExaminationError> {
        if !descriptor.modes.contains(&reveal.mode()) {
            return Err(ExaminationError::Mode);
        }
        let wire = RecordStreams::read(capture.client, capture.server)?;
        let host = &descriptor.host;
        let negotiated = hello::read_hellos(wire.client.hello, wire.server.hello, host, &[SUITE])?;
        let server = flight::verify_server(&wire, SUITE, &reveal.server_handshake, host, trust)?;
        let encrypted = &wire.client.encrypted;
        flight::verify_client_finished(
            SUITE,
            &reveal.client_handshake,
            encrypted,
            &server.transcript,
        )?;
        let rest = wire.server.encrypted.get(server.records..).unwrap_or_default();
        check_length(&wire, rest, reveal)?;
        let (answer, hidden) = match &reveal.server {
            RevealedServerData::TrafficSecret(secret) => {
                (RevealedResponse::Full(server_data(SUITE, secret, rest)?), vec![])
            }
            RevealedServerData::Proved(revealed) => {
                check_order(&revealed.hidden, revealed.response_bytes.len())?;
                let seen =
                    RedactedBytes { bytes: &revealed.response_bytes, hidden: &revealed.hidden };
                let read = selective::read(seen, descriptor)?;
                let hidden = read.hidden.clone();
                (RevealedResponse::Selective(Box::new(read)), hidden)
            }
        };
        let statement = statement_of(&wire, rest, reveal, &hidden, &server.transcript)?;
        Ok(Self { negotiated, server, answer, statement })
    }

    fn found(
        self,
        reveal: &Reveal,
        backend: &dyn ZkBackend,
        descriptor: &Descriptor,
    ) -> Result<Findings, ExaminationError> {
        let Self { negotiated, server, answer, statement } = self;
        let plaintext = masked(&reveal.request_bytes, &reveal.hidden);
        let found =
            Findings::of((negotiated, server), plaintext, &reveal.hidden, answer, descriptor)?;
        let proof = ProofSummary {
            system: backend.name().to_owned(),
            circuit: backend.circuit(&statement)?,
            sha256: sha256(&reveal.proof),
            public_sha256: sha256(&statement.public().concat()),
        };
        Ok(Findings { mode: reveal.mode(), proof: Some(proof), ..found })
    }
}

/// Returns the bytes with zeros for hidden ones, regardless of the prover's values for them.
fn masked(plaintext: &[u8], hidden: &[Range<usize>]) -> Vec<u8> {
    let mut plaintext = plaintext.to_vec();
    for hidden in hidden {
        plaintext.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    plaintext
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ExaminationError> {
    bytes.try_into().map_err(|_| ExaminationError::SecretLength)
}
