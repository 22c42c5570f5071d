//! Proofs by Spartan over T256 (discrete logarithms, no trusted setup). spartan2 proves; what
//! verifies is [`super::verifier`].

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
    Block, Statement, ZkBackend, ZkError, circuit,
    verifier::{Recorder, Verifier},
    words::packed,
};

type System = SpartanZkSNARK<T256HyraxEngine>;
type Scalar = <T256HyraxEngine as Engine>::Scalar;
type ProverKey = <System as R1CSSNARKTrait<T256HyraxEngine>>::ProverKey;

/// The circuits that there are: as many blocks as fit under a power of two of constraints, since
/// everything in between costs the same; and the digest of the key that spartan2 derives, which
/// names the circuit in every transcript. A test derives them again.
const CIRCUITS: [(usize, [u8; 32]); 3] = [
    (
        19,
        [
            0xb2, 0x6a, 0xd3, 0x0c, 0xf9, 0x78, 0x33, 0x06, 0x8b, 0xdf, 0x83, 0xfc, 0x41, 0x22,
            0x14, 0xef, 0x3e, 0x2a, 0x3f, 0x5d, 0x53, 0x3f, 0xe9, 0x79, 0xf5, 0xfe, 0xd5, 0xe6,
            0xda, 0xd7, 0x47, 0xa3,
        ],
    ),
    (
        64,
        [
            0x22, 0xf3, 0xba, 0x81, 0x6d, 0xf4, 0x78, 0x1b, 0x12, 0x68, 0x76, 0x82, 0xfa, 0x05,
            0xb0, 0xa7, 0x3a, 0x6b, 0xa4, 0x4b, 0x67, 0x11, 0x4a, 0xf2, 0x58, 0x92, 0x0c, 0x94,
            0x12, 0x9f, 0x44, 0x02,
        ],
    ),
    (
        150,
        [
            0x63, 0x60, 0x38, 0x12, 0xc5, 0xa6, 0xf4, 0x26, 0xe7, 0xf7, 0xf5, 0x65, 0x79, 0xe4,
            0x12, 0x10, 0x00, 0x61, 0xe0, 0xa9, 0x42, 0x6a, 0x1a, 0x82, 0xc7, 0xfb, 0x30, 0xa4,
            0xfb, 0x0c, 0x09, 0x91,
        ],
    ),
];

/// Spartan, with what proves and verifies each circuit once it was needed: that follows from the
/// circuit, so that nobody has to be believed for it. Some hundred megabytes each.
#[derive(Default)]
pub struct Spartan {
    keys: Mutex<HashMap<usize, Arc<ProverKey>>>,
    verifiers: Mutex<HashMap<usize, Arc<Verifier>>>,
}

#[derive(Clone)]
struct Circuit {
    statement: Statement,
    secret: [u8; 32],
}

impl Spartan {
    /// What proves a circuit; seconds where it is not there yet.
    fn key(&self, blocks: usize) -> Result<Arc<ProverKey>, ZkError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(&blocks) {
            return Ok(key.clone());
        }
        let made = System::setup(Circuit { statement: blank(blocks), secret: [0; 32] });
        let (key, verifier) = made.map_err(|error| failed(&error))?;
        if verifier.digest().map_err(|error| failed(&error))? != circuit_for(blocks)?.1 {
            return Err(ZkError::Prove("the circuit is not the one that is verified".to_owned()));
        }
        let key = Arc::new(key);
        keys.insert(blocks, key.clone());
        Ok(key)
    }

    /// What verifies proofs about a circuit; a second where it is not there yet.
    fn verifier(&self, blocks: usize) -> Result<Arc<Verifier>, ZkError> {
        let mut verifiers = self.verifiers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = verifiers.get(&blocks) {
            return Ok(verifier.clone());
        }
        let mut recorder = Recorder::new();
        circuit::synthesize(&mut recorder, &blank(blocks), &[0; 32])
            .map_err(|error| failed(&error))?;
        let made = Verifier::new(recorder, circuit_for(blocks)?.1);
        let made = Arc::new(made.map_err(|error| failed(&error))?);
        verifiers.insert(blocks, made.clone());
        Ok(made)
    }
}

/// A statement of blocks that say nothing.
fn blank(blocks: usize) -> Statement {
    Statement {
        hellos: [0; 32],
        transcript: [0; 32],
        server_handshake: [0; 32],
        client_handshake: [0; 32],
        server_data: [0; 32],
        client_iv: [0; 12],
        blocks: vec![Block::BLANK; blocks],
    }
}

/// The smallest circuit with room for so many blocks.
fn circuit_for(blocks: usize) -> Result<(usize, [u8; 32]), ZkError> {
    CIRCUITS.into_iter().find(|(room, _)| blocks <= *room).ok_or(ZkError::TooLong)
}

fn failed(error: &dyn std::fmt::Debug) -> ZkError {
    ZkError::Prove(format!("{error:?}"))
}

/// The statement filled up to a shape with blocks that say nothing.
fn shaped(statement: &Statement) -> Result<Statement, ZkError> {
    let (room, _) = circuit_for(statement.blocks.len())?;
    let mut statement = statement.clone();
    statement.blocks.resize(room, Block::BLANK);
    Ok(statement)
}

impl ZkBackend for Spartan {
    fn name(&self) -> &'static str {
        "spartan2-0.9.0/t256-hyrax"
    }

    fn circuit(&self, blocks: usize) -> Result<[u8; 32], ZkError> {
        Ok(circuit_for(blocks)?.1)
    }

    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        let statement = shaped(statement)?;
        let key = self.key(statement.blocks.len())?;
        let circuit = Circuit { statement, secret: *secret };
        let prepared = System::prep_prove(&key, circuit.clone(), true);
        let prepared = prepared.map_err(|error| failed(&error))?;
        let proof = System::prove(&key, circuit, prepared, true);
        let (proof, _) = proof.map_err(|error| failed(&error))?;
        options().serialize(&proof).map_err(|error| failed(&error))
    }

    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError> {
        let statement = shaped(statement)?;
        let verifier = self.verifier(statement.blocks.len())?;
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
