//! Proofs by Spartan over T256 (discrete logarithms, no trusted setup).

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

use super::{Block, Statement, ZkBackend, ZkError, circuit, words::packed};

type System = SpartanZkSNARK<T256HyraxEngine>;
type Scalar = <T256HyraxEngine as Engine>::Scalar;
type ProverKey = <System as R1CSSNARKTrait<T256HyraxEngine>>::ProverKey;
type VerifierKey = <System as R1CSSNARKTrait<T256HyraxEngine>>::VerifierKey;

/// Blocks of the shapes that there are: as many as fit under a power of two of constraints, since
/// everything in between costs the same.
const SHAPES: [usize; 3] = [19, 64, 150];
/// The longest proof, in bytes.
const LONGEST: u64 = 512 * 1024;

/// Spartan, with the keys of each shape once they were needed: they follow from the circuit, so
/// that nobody has to be believed for them. Some hundred megabytes each.
#[derive(Default)]
pub struct Spartan {
    keys: Mutex<HashMap<usize, Arc<(ProverKey, VerifierKey)>>>,
}

#[derive(Clone)]
struct Circuit {
    statement: Statement,
    secret: [u8; 32],
}

impl Spartan {
    /// The keys of a shape; seconds where they are not there yet.
    fn keys(&self, blocks: usize) -> Result<Arc<(ProverKey, VerifierKey)>, ZkError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = keys.get(&blocks) {
            return Ok(keys.clone());
        }
        let statement = Statement {
            hellos: [0; 32],
            transcript: [0; 32],
            server_handshake: [0; 32],
            client_handshake: [0; 32],
            server_data: [0; 32],
            client_iv: [0; 12],
            blocks: vec![Block::BLANK; blocks],
        };
        let made = System::setup(Circuit { statement, secret: [0; 32] });
        let made = Arc::new(made.map_err(|error| ZkError::Prove(format!("{error:?}")))?);
        keys.insert(blocks, made.clone());
        Ok(made)
    }
}

/// The statement filled up to a shape with blocks that say nothing.
fn shaped(statement: &Statement) -> Result<Statement, ZkError> {
    let count = statement.blocks.len();
    let shape = SHAPES.into_iter().find(|shape| count <= *shape).ok_or(ZkError::TooLong)?;
    let mut statement = statement.clone();
    statement.blocks.resize(shape, Block::BLANK);
    Ok(statement)
}

impl ZkBackend for Spartan {
    fn name(&self) -> &'static str {
        "spartan2-0.9.0/t256-hyrax"
    }

    fn circuit(&self, blocks: usize) -> Result<[u8; 32], ZkError> {
        let shape = SHAPES.into_iter().find(|shape| blocks <= *shape).ok_or(ZkError::TooLong)?;
        let digest = self.keys(shape)?.1.digest();
        digest.map_err(|error| ZkError::Prove(format!("{error:?}")))
    }

    fn prove(&self, statement: &Statement, secret: &[u8; 32]) -> Result<Vec<u8>, ZkError> {
        let failed = |error: &dyn std::fmt::Debug| ZkError::Prove(format!("{error:?}"));
        let statement = shaped(statement)?;
        let keys = self.keys(statement.blocks.len())?;
        let circuit = Circuit { statement, secret: *secret };
        let prepared = System::prep_prove(&keys.0, circuit.clone(), true);
        let prepared = prepared.map_err(|error| failed(&error))?;
        let proof = System::prove(&keys.0, circuit, prepared, true);
        let (proof, _) = proof.map_err(|error| failed(&error))?;
        options().serialize(&proof).map_err(|error| failed(&error))
    }

    fn verify(&self, statement: &Statement, proof: &[u8]) -> Result<(), ZkError> {
        let statement = shaped(statement)?;
        let proof: System = options().deserialize(proof).map_err(|_| ZkError::Form)?;
        let keys = self.keys(statement.blocks.len())?;
        // The public values are the proof's own: they have to be those of this statement.
        let proved = proof.verify(&keys.1).map_err(|_| ZkError::Proof)?;
        if proved == values(&statement) { Ok(()) } else { Err(ZkError::OtherStatement) }
    }
}

fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(LONGEST)
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
