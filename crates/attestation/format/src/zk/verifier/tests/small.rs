//! A circuit small enough for a hundred thousand proofs: `w² = p` and `w·p = q`.

use std::sync::LazyLock;

use bellpepper_core::{ConstraintSystem, SynthesisError, num::AllocatedNum};
use bincode::Options as _;
use ff::Field as _;
use spartan2::{
    provider::T256HyraxEngine,
    spartan_zk::SpartanZkSNARK,
    traits::{
        circuit::SpartanCircuit,
        snark::{DigestHelperTrait as _, R1CSSNARKTrait},
    },
};

use super::super::{Recorder, Scalar, Verifier};

pub(super) type System = SpartanZkSNARK<T256HyraxEngine>;
pub(super) type Keys = (
    <System as R1CSSNARKTrait<T256HyraxEngine>>::ProverKey,
    <System as R1CSSNARKTrait<T256HyraxEngine>>::VerifierKey,
);

#[derive(Clone)]
pub(super) struct Small {
    pub(super) root: u64,
    /// Witnesses without any constraint, for more rows of commitments.
    pub(super) padding: usize,
}

impl Small {
    pub(super) fn public(&self) -> [Scalar; 2] {
        let root = Scalar::from(self.root);
        [root.square(), root.square() * root]
    }
}

impl SpartanCircuit<T256HyraxEngine> for Small {
    fn public_values(&self) -> Result<Vec<Scalar>, SynthesisError> {
        Ok(self.public().to_vec())
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
        let root = Scalar::from(self.root);
        let root = AllocatedNum::alloc(cs.namespace(|| "root"), || Ok(root))?;
        let square = root.square(cs.namespace(|| "square"))?;
        let cube = root.mul(cs.namespace(|| "cube"), &square)?;
        for at in 0..self.padding {
            AllocatedNum::alloc(cs.namespace(|| format!("padding {at}")), || Ok(Scalar::ONE))?;
        }
        square.inputize(cs.namespace(|| "public square"))?;
        cube.inputize(cs.namespace(|| "public cube"))
    }
}

/// A circuit with its keys for spartan2 and its verifier here.
pub(super) struct Setup {
    pub(super) circuit: Small,
    pub(super) keys: Keys,
    pub(super) verifier: Verifier,
}

impl Setup {
    fn of(padding: usize) -> Self {
        let circuit = Small { root: 3, padding };
        let keys = System::setup(circuit.clone()).unwrap();
        let digest = keys.1.digest().unwrap();
        let mut recorder = Recorder::new();
        circuit.synthesize(&mut recorder, &[], &[], None).unwrap();
        let verifier = Verifier::new(recorder, digest).unwrap();
        Self { circuit, keys, verifier }
    }

    pub(super) fn prove(&self) -> Vec<u8> {
        let prepared = System::prep_prove(&self.keys.0, self.circuit.clone(), true).unwrap();
        let proof = System::prove(&self.keys.0, self.circuit.clone(), prepared, true).unwrap();
        options().serialize(&proof.0).unwrap()
    }

    /// Returns the public values that spartan2's own verifier accepts as proved.
    pub(super) fn spartan2(&self, proof: &[u8]) -> Option<Vec<Scalar>> {
        let proof: System = options().deserialize(proof).ok()?;
        proof.verify(&self.keys.1).ok()
    }
}

pub(super) fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding()
}

/// With one row of commitments, and with four.
pub(super) static ONE_ROW: LazyLock<Setup> = LazyLock::new(|| Setup::of(0));
pub(super) static FOUR_ROWS: LazyLock<Setup> = LazyLock::new(|| Setup::of(7000));
