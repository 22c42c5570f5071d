//! Parts of a connection hidden by a proof in zero knowledge: the credentials in the request, and in
//! `zktls-full` what no claim names in the response, too.
//!
//! **What the witness does not get:** the handshake secret itself, the master secret, the client's
//! traffic secret and key; in `zktls-full` those of the server's data neither. None of them follows
//! from what it gets, since HKDF runs one way.

mod statement;
mod stream;
mod tell;

use std::ops::Range;

use minicbor::{Decode, Encode, bytes::ByteArray};

use crate::{
    body::Proof,
    descriptor::{Descriptor, Mode},
    full_reveal::{Answer, Capture, Findings},
    http::{Seen, selective},
    refusal::Refusal,
    tls::{
        flight::{self, Trust, sha256},
        hello::{self, Agreed},
        open::server_data,
        schedule::Suite,
        wire::Wire,
    },
    zk::{Statement, ZkBackend},
};

use self::statement::{is_short, ordered, statement_of};
pub use self::tell::{Hide, HideRequest, HideResponse, reveal};

/// The only suite whose stream is proved.
const SUITE: Suite = Suite::ChaCha20Poly1305Sha256;

/// What a prover tells once the connection is over.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Reveal {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub server_handshake: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    pub client_handshake: [u8; 32],
    #[n(2)]
    pub server: Told,
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

/// What is told of what the server said.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Told {
    /// The traffic secret: everything.
    #[n(0)]
    Opened(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]),
    /// Parts, by proof.
    #[n(1)]
    Proved(#[n(0)] Box<Answered>),
}

/// What is told of a response of which parts are hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Answered {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub iv: [u8; 12],
    /// By record of the server's after its flight.
    #[n(1)]
    pub records: Vec<Inner>,
    /// What the server said, with anything in the place of what is hidden.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub said: Vec<u8>,
    /// In their order, none empty, none touching another.
    #[n(3)]
    pub hidden: Vec<Range<usize>>,
}

/// What is told of a record of the server's.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Inner {
    /// The type of what it holds.
    #[n(0)]
    pub kind: u8,
    /// Zeros behind that (RFC 8446, section 5.4).
    #[n(1)]
    pub padding: u16,
    /// The key of its tag, the beginning of its stream.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub tag_key: [u8; 32],
}

impl Reveal {
    /// How much it hides.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        match self.server {
            Told::Opened(_) => Mode::ZktlsRequest,
            Told::Proved(_) => Mode::ZktlsFull,
        }
    }
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
    let stated = Stated::of(capture, reveal, descriptor, trust)?;
    backend.verify(&stated.statement, &reveal.proof)?;
    stated.found(reveal, backend, descriptor)
}

/// [`examine`] without the proof, which is not verified: for the prover who made it, or is about to.
///
/// # Errors
/// The first check that fails.
pub fn examine_own(
    capture: Capture<'_>,
    reveal: &Reveal,
    backend: &dyn ZkBackend,
    descriptor: &Descriptor,
    trust: &Trust<'_>,
) -> Result<Findings, Refusal> {
    Stated::of(capture, reveal, descriptor, trust)?.found(reveal, backend, descriptor)
}

/// A connection that is what its prover tells, if the statement is proved.
struct Stated {
    agreed: Agreed,
    server: flight::Server,
    answer: Answer,
    statement: Statement,
}

impl Stated {
    fn of(
        capture: Capture<'_>,
        reveal: &Reveal,
        descriptor: &Descriptor,
        trust: &Trust<'_>,
    ) -> Result<Self, Refusal> {
        if !descriptor.modes.contains(&reveal.mode()) {
            return Err(Refusal::Mode);
        }
        let wire = Wire::read(capture.client, capture.server)?;
        let host = &descriptor.host;
        let agreed = hello::agreed(wire.client.hello, wire.server.hello, host, &[SUITE])?;
        let server = flight::server(&wire, SUITE, &reveal.server_handshake, host, trust)?;
        let sealed = &wire.client.sealed;
        flight::client_finished(SUITE, &reveal.client_handshake, sealed, &server.transcript)?;
        let rest = wire.server.sealed.get(server.records..).unwrap_or_default();
        is_short(&wire, rest, reveal)?;
        let (answer, hidden) = match &reveal.server {
            Told::Opened(secret) => (Answer::Opened(server_data(SUITE, secret, rest)?), vec![]),
            Told::Proved(told) => {
                ordered(&told.hidden, told.said.len())?;
                let seen = Seen { bytes: &told.said, hidden: &told.hidden };
                let read = selective::read(seen, descriptor)?;
                let hidden = read.hidden.clone();
                (Answer::Selective(Box::new(read)), hidden)
            }
        };
        let statement = statement_of(&wire, rest, reveal, &hidden, &server.transcript)?;
        Ok(Self { agreed, server, answer, statement })
    }

    fn found(
        self,
        reveal: &Reveal,
        backend: &dyn ZkBackend,
        descriptor: &Descriptor,
    ) -> Result<Findings, Refusal> {
        let Self { agreed, server, answer, statement } = self;
        let said = shown(&reveal.said, &reveal.hidden);
        let found = Findings::of((agreed, server), said, &reveal.hidden, answer, descriptor)?;
        let proof = Proof {
            system: backend.name().to_owned(),
            circuit: backend.circuit(&statement)?,
            sha256: sha256(&reveal.proof),
            public_sha256: sha256(&statement.public().concat()),
        };
        Ok(Findings { mode: reveal.mode(), proof: Some(proof), ..found })
    }
}

/// What is shown of what somebody said: zeros where it is hidden, whatever was told.
fn shown(said: &[u8], hidden: &[Range<usize>]) -> Vec<u8> {
    let mut said = said.to_vec();
    for hidden in hidden {
        said.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    said
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Refusal> {
    bytes.try_into().map_err(|_| Refusal::SecretLength)
}
