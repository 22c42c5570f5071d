//! Proofs by Spartan over T256 (discrete logarithms, no trusted setup). spartan2 proves;
//! [`super::verifier`] verifies.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bellpepper_core::{ConstraintSystem, SynthesisError, num::AllocatedNum};
use bincode::Options as _;
use spartan2::{
    provider::T256HyraxEngine,
    spartan_zk::SpartanZkSNARK,
    traits::{
        Engine,
        circuit::SpartanCircuit,
        snark::{DigestHelperTrait as _, R1CSSNARKTrait},
    },
};

use super::{
    Block, ServerData, Statement, ZkBackend, ZkError, circuit,
    verifier::{Recorder, Verifier},
    words::packed,
};

type Snark = SpartanZkSNARK<T256HyraxEngine>;
type Scalar = <T256HyraxEngine as Engine>::Scalar;
type ProverKey = <Snark as R1CSSNARKTrait<T256HyraxEngine>>::ProverKey;

/// The available circuits: as many blocks as fit under a power of two of constraints, because
/// everything in between costs the same; with the digest of the key that spartan2 derives, which
/// identifies the circuit in every transcript. A test derives them again.
const CIRCUITS: [(CircuitKind, [u8; 32]); 5] = [
    (
        CircuitKind { proves_server: false, blocks: 19 },
        [
            0xb2, 0x6a, 0xd3, 0x0c, 0xf9, 0x78, 0x33, 0x06, 0x8b, 0xdf, 0x83, 0xfc, 0x41, 0x22,
            0x14, 0xef, 0x3e, 0x2a, 0x3f, 0x5d, 0x53, 0x3f, 0xe9, 0x79, 0xf5, 0xfe, 0xd5, 0xe6,
            0xda, 0xd7, 0x47, 0xa3,
        ],
    ),
    (
        CircuitKind { proves_server: false, blocks: 64 },
        [
            0x22, 0xf3, 0xba, 0x81, 0x6d, 0xf4, 0x78, 0x1b, 0x12, 0x68, 0x76, 0x82, 0xfa, 0x05,
            0xb0, 0xa7, 0x3a, 0x6b, 0xa4, 0x4b, 0x67, 0x11, 0x4a, 0xf2, 0x58, 0x92, 0x0c, 0x94,
            0x12, 0x9f, 0x44, 0x02,
        ],
    ),
    (
        CircuitKind { proves_server: false, blocks: 150 },
        [
            0x63, 0x60, 0x38, 0x12, 0xc5, 0xa6, 0xf4, 0x26, 0xe7, 0xf7, 0xf5, 0x65, 0x79, 0xe4,
            0x12, 0x10, 0x00, 0x61, 0xe0, 0xa9, 0x42, 0x6a, 0x1a, 0x82, 0xc7, 0xfb, 0x30, 0xa4,
            0xfb, 0x0c, 0x09, 0x91,
        ],
    ),
    (
        CircuitKind { proves_server: true, blocks: 54 },
        [
            0x34, 0x5d, 0xca, 0x8e, 0xf9, 0x44, 0x41, 0xea, 0xdb, 0x98, 0xd8, 0x6e, 0xc7, 0x54,
            0xed, 0xe0, 0xcf, 0xf3, 0xa2, 0x07, 0x0c, 0x1a, 0xe2, 0xe5, 0x92, 0x96, 0x38, 0x14,
            0xf1, 0x3c, 0x76, 0x0b,
        ],
    ),
    (
        CircuitKind { proves_server: true, blocks: 136 },
        [
            0x6b, 0xf8, 0x75, 0xcf, 0x7a, 0x4c, 0x3b, 0x1a, 0xa7, 0xdd, 0xd8, 0x78, 0x88, 0x0f,
            0x90, 0xe1, 0xd9, 0x17, 0xa6, 0x22, 0x1e, 0x85, 0x28, 0x58, 0xed, 0xf7, 0x5d, 0x0d,
            0xac, 0x31, 0x9c, 0x69,
        ],
    ),
];

/// The properties that statements of one circuit share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CircuitKind {
    /// Whether the server's stream is proved too.
    proves_server: bool,
    blocks: usize,
}

/// Spartan, with cached proving and verifying keys of the used circuits. They are derived from the
/// circuit, so that no setup has to be trusted. Some hundred megabytes each.
#[derive(Default)]
pub struct Spartan {
    keys: Mutex<HashMap<CircuitKind, Arc<ProverKey>>>,
    verifiers: Mutex<HashMap<CircuitKind, Arc<Verifier>>>,
}

#[derive(Clone)]
struct Circuit {
    statement: Statement,
    secret: [u8; 32],
}

impl Spartan {
    /// Returns the proving key of a circuit; deriving it takes seconds.
    fn key(&self, kind: CircuitKind) -> Result<Arc<ProverKey>, ZkError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&kind) {
            return Ok(key.clone());
        }
        let made = Snark::setup(Circuit { statement: blank_statement(kind), secret: [0; 32] });
        let (key, verifier) = made.map_err(|error| proving_error(&error))?;
        if verifier.digest().map_err(|error| proving_error(&error))? != kind.digest()? {
            return Err(ZkError::Prove("the circuit differs from the verified one".to_owned()));
        }
        let key = Arc::new(key);
        keys.insert(kind, key.clone());
        Ok(key)
    }

    /// Returns the verifier of a circuit; deriving it takes a second.
    fn verifier(&self, kind: CircuitKind) -> Result<Arc<Verifier>, ZkError> {
        let mut verifiers = self.verifiers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = verifiers.get(&kind) {
            return Ok(verifier.clone());
        }
        let mut recorder = Recorder::new();
        circuit::synthesize(&mut recorder, &blank_statement(kind), &[0; 32])
            .map_err(|error| proving_error(&error))?;
        let made = Verifier::new(recorder, kind.digest()?);
        let made = Arc::new(made.map_err(|error| proving_error(&error))?);
        verifiers.insert(kind, made.clone());
        Ok(made)
    }
}

impl CircuitKind {
    /// Returns the smallest circuit that a statement fits into.
    fn of(statement: &Statement) -> Result<Self, ZkError> {
        let proves_server = matches!(statement.server, ServerData::Proved(_));
        let mut kinds = CIRCUITS.into_iter().map(|(kind, _)| kind);
        let fits = |kind: &Self| {
            kind.proves_server == proves_server && statement.blocks.len() <= kind.blocks
        };
        kinds.find(fits).ok_or(ZkError::TooLong)
    }

    fn digest(self) -> Result<[u8; 32], ZkError> {
        let circuit = CIRCUITS.into_iter().find(|(kind, _)| *kind == self);
        circuit.map(|(_, digest)| digest).ok_or(ZkError::TooLong)
    }
}

/// Returns a statement of blank blocks.
fn blank_statement(kind: CircuitKind) -> Statement {
    Statement {
        hellos: [0; 32],
        transcript: [0; 32],
        server_handshake: [0; 32],
        client_handshake: [0; 32],
        server: if kind.proves_server {
            ServerData::Proved([0; 12])
        } else {
            ServerData::TrafficSecret([0; 32])
        },
        client_iv: [0; 12],
        blocks: vec![Block::BLANK; kind.blocks],
    }
}

fn proving_error(error: &dyn std::fmt::Debug) -> ZkError {
    ZkError::Prove(format!("{error:?}"))
}

/// Pads the statement with blank blocks to the size of a circuit.
fn padded_statement(statement: &Statement) -> Result<(CircuitKind, Statement), ZkError> {
    let kind = CircuitKind::of(statement)?;
    let mut statement = statement.clone();
    statement.blocks.resize(kind.blocks, Block::BLANK);
    Ok((kind, statement))
}

impl ZkBackend for Spartan {
    fn name(&self) -> &'static str {
        "spartan2-0.9.0/t256-hyrax"
    }

    fn circuit(&self, statement: &Statement) -> Result<[u8; 32], ZkError> {
        CircuitKind::of(statement)?.digest()
    }

    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        let (kind, statement) = padded_statement(statement)?;
        let key = self.key(kind)?;
        let circuit = Circuit { statement, secret: *secret };
        let prepared = Snark::prep_prove(&key, circuit.clone(), true);
        let prepared = prepared.map_err(|error| proving_error(&error))?;
        let proof = Snark::prove(&key, circuit, prepared, true);
        let (proof, _) = proof.map_err(|error| proving_error(&error))?;
        options().serialize(&proof).map_err(|error| proving_error(&error))
    }

    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError> {
        let (kind, statement) = padded_statement(statement)?;
        let verifier = self.verifier(kind)?;
        Ok(verifier.verify(&values(&statement), proof)?)
    }
}

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

fn values(statement: &Statement) -> Vec<Scalar> {
    statement.public().iter().map(|bytes| packed(bytes)).collect()
}

impl SpartanCircuit<T256HyraxEngine> for Circuit {
    fn public_values(&self) -> Result<Vec<Scalar>, SynthesisError> {
        Ok(values(&self.statement))
    }

    fn shared<CS: ConstraintSystem<Scalar>>(
        &self,
        _: &mut CS,
    ) -> Result<Vec<AllocatedNum<Scalar>>, SynthesisError> {
        Ok(vec![])
    }

    fn precommitted<CS: ConstraintSystem<Scalar>>(
        &self,
        _: &mut CS,
        _: &[AllocatedNum<Scalar>],
    ) -> Result<Vec<AllocatedNum<Scalar>>, SynthesisError> {
        Ok(vec![])
    }

    fn num_challenges(&self) -> usize {
        0
    }

    fn synthesize<CS: ConstraintSystem<Scalar>>(
        &self,
        cs: &mut CS,
        _: &[AllocatedNum<Scalar>],
        _: &[AllocatedNum<Scalar>],
        _: Option<&[Scalar]>,
    ) -> Result<(), SynthesisError> {
        circuit::synthesize(cs, &self.statement, &self.secret)
    }
}
