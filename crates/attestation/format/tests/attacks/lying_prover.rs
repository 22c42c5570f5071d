//! A prover that claims a false statement, and proves it as far as possible.

use std::{
    ops::Range,
    sync::{LazyLock, Mutex, PoisonError},
};

use attestation::{
    CertificateTrust, ExaminationError,
    descriptor::Descriptor,
    full_reveal::Capture,
    zk::{Block, ProofError, ServerData, Side, Spartan, Statement, ZkBackend, ZkError},
    zktls::{Reveal, examine},
};
use rustls::pki_types::UnixTime;

use crate::setup::Session;

/// The keys of a shape take seconds and are created once. A proof takes gigabytes, so that one is
/// computed at a time.
pub(crate) static SPARTAN: LazyLock<OneByOne> = LazyLock::new(OneByOne::default);

/// A backend that computes one proof at a time.
#[derive(Default)]
pub(crate) struct OneByOne {
    spartan: Spartan,
    proving: Mutex<()>,
}

impl ZkBackend for OneByOne {
    fn name(&self) -> &'static str {
        self.spartan.name()
    }

    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        let _one = self.proving.lock().unwrap_or_else(PoisonError::into_inner);
        self.spartan.prove(statement, secret)
    }

    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError> {
        self.spartan.circuit(statement)
    }

    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError> {
        self.spartan.verify(statement, proof)
    }
}

/// Accepts every proof, and records the statement.
#[derive(Default)]
struct Asked(Mutex<Option<Statement>>);

impl ZkBackend for Asked {
    fn name(&self) -> &'static str {
        SPARTAN.name()
    }

    fn prove(&self, _: &Statement, _: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        Ok(vec![])
    }

    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError> {
        SPARTAN.circuit(statement)
    }

    fn verify(&self, statement: &Statement, _: &[u8]) -> Result<(), ZkError> {
        *self.0.lock().unwrap() = Some(statement.clone());
        Ok(())
    }
}

/// An attestor that examines a connection under a descriptor.
#[derive(Clone, Copy)]
pub(crate) struct TestAttestor<'a> {
    pub(crate) session: &'a Session,
    pub(crate) descriptor: &'a Descriptor,
}

impl TestAttestor<'_> {
    fn examined(self, revealed: &Reveal, backend: &dyn ZkBackend) -> Result<(), ExaminationError> {
        let capture = Capture { client: &self.session.client, server: &self.session.server };
        let trust = CertificateTrust { roots: &self.session.roots, now: UnixTime::now() };
        examine(capture, revealed, backend, self.descriptor, &trust).map(drop)
    }

    /// Returns why a reveal with its proof is refused.
    pub(crate) fn refuses(self, revealed: &Reveal) -> ExaminationError {
        self.examined(revealed, &*SPARTAN).unwrap_err()
    }

    /// Returns the statement to be proved. With a proof of it the reveal would be accepted.
    pub(crate) fn asks(self, revealed: &Reveal) -> Statement {
        let asked = Asked::default();
        assert_eq!(self.examined(revealed, &asked), Ok(()), "only the proof is missing");
        asked.0.into_inner().unwrap().unwrap()
    }

    /// Returns why the reveal is refused with a proof for it, computed according to the protocol
    /// with the handshake secret, and with the expected public values.
    pub(crate) fn refuses_a_proof_of(self, revealed: &Reveal) -> ExaminationError {
        let statement = self.asks(revealed);
        let mut proof = SPARTAN.prove(&statement, &secret(self.session)).unwrap();
        cover(&mut proof, &statement);
        self.refuses(&Reveal { proof, ..revealed.clone() })
    }

    /// The same with the proof of another connection or another statement, with the expected public
    /// values.
    pub(crate) fn refuses_covered(self, revealed: &Reveal) -> ExaminationError {
        let mut covered = revealed.clone();
        cover(&mut covered.proof, &self.asks(revealed));
        self.refuses(&covered)
    }
}

pub(crate) fn secret(session: &Session) -> [u8; 32] {
    session.secret.as_slice().try_into().unwrap()
}

pub(crate) const fn not_proved(why: ProofError) -> ExaminationError {
    ExaminationError::Zk(ZkError::Proof(why))
}

/// Replaces the public values of a proof with those of a statement.
pub(crate) fn cover(proof: &mut [u8], statement: &Statement) {
    let values = public_values(proof);
    let all = public(statement).into_iter().chain(std::iter::repeat(vec![]));
    for (value, bytes) in proof[values].chunks_mut(32).zip(all) {
        value.fill(0);
        value[..bytes.len()].copy_from_slice(&bytes);
    }
}

/// Returns the range of a proof's public values: after two options, the rows of the commitment, and
/// the count of the values.
pub(crate) fn public_values(proof: &[u8]) -> Range<usize> {
    let count = |at: usize| {
        usize::try_from(u64::from_le_bytes(proof[at..at + 8].try_into().unwrap())).unwrap()
    };
    let at = 10 + 33 * count(2);
    at + 8..at + 8 + 32 * count(at)
}

/// Returns the public values of a statement, 16 bytes each; those of padding blocks are zeros.
/// Computed here independently of the code under test.
fn public(statement: &Statement) -> Vec<Vec<u8>> {
    let proves_server = matches!(statement.server, ServerData::Proved(_));
    let mut fields = vec![
        statement.hellos.to_vec(),
        statement.transcript.to_vec(),
        statement.server_handshake.to_vec(),
        statement.client_handshake.to_vec(),
        match statement.server {
            ServerData::TrafficSecret(secret) => secret.to_vec(),
            ServerData::Proved(iv) => iv.to_vec(),
        },
        statement.client_iv.to_vec(),
    ];
    for block in &statement.blocks {
        let Block { nonce, counter, revealed: opened, printable, text, scalar, .. } = block;
        let masks = [opened, printable, text, scalar].map(|mask| mask.to_le_bytes());
        fields.push([nonce.as_slice(), &counter.to_le_bytes()].concat());
        if proves_server {
            fields.push(vec![u8::from(block.side == Side::Server)]);
        }
        fields.push(block.ciphertext.to_vec());
        fields.push(masks[..if proves_server { 4 } else { 2 }].concat());
        fields.push(block.plain.to_vec());
    }
    fields.iter().flat_map(|field| field.chunks(16).map(<[u8]>::to_vec)).collect()
}
