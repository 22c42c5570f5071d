//! An audit of the circuit: the handshake secret and the attestor's recording determine every value
//! of the circuit. Keys that were not derived from the handshake would be undetermined.
//!
//! The argument holds for every assignment, not only for the recorded one. Known values propagate
//! from the secret and the recorded inputs by two rules until nothing new is found:
//!
//! 1. A constraint whose only unknown is in its product, with a coefficient that is not
//!    zero, determines it.
//! 2. A linear constraint between bits is an equation of integers if its coefficients are too
//!    small to wrap around the field. If only one of all unknown bits has the smallest power of
//!    two in its coefficient, the equation modulo the next power determines it.
//!
//! `cargo test -p attestation --test audit`
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

mod big;
mod record;
mod spread;

use attestation::zk::{Block, ServerData, Side, Statement, synthesize};
use bellpepper_core::{ConstraintSystem as _, Index};
use spartan2::{provider::T256HyraxEngine, traits::Engine};

use self::{record::Record, spread::Audit};

type Scalar = <T256HyraxEngine as Engine>::Scalar;
type Sum = Vec<(Index, Scalar)>;

/// With only the client's stream proved, and with both.
const KINDS: [ServerData; 2] = [ServerData::TrafficSecret([0; 32]), ServerData::Proved([0; 12])];

fn statement(server: ServerData) -> Statement {
    let plain = Block {
        nonce: [3; 12],
        counter: 1,
        ciphertext: std::array::from_fn(|at| u8::try_from(at * 3).unwrap()),
        revealed: 0x0f0f_0f0f_0f0f_0f0f,
        ..Block::BLANK
    };
    let tag = Block { nonce: [3; 12], revealed: u64::from(u32::MAX), ..Block::BLANK };
    let mut blocks = vec![tag, plain.clone()];
    if let ServerData::Proved(_) = server {
        blocks.push(Block { side: Side::Server, ..plain });
    }
    Statement {
        hellos: [1; 32],
        transcript: [2; 32],
        server_handshake: [0; 32],
        client_handshake: [0; 32],
        server,
        client_iv: [0; 12],
        blocks,
    }
}

/// Returns the given variables: the bits of the secret, and the public values that an attestor
/// recorded: the hashes of the statement, and the position, side, ciphertext and masks of each
/// block.
fn given(record: &Record, server: ServerData) -> Vec<usize> {
    let secret = (0..256).map(|bit| record.number(Index::Aux(bit)));
    // The constant, two values for each hash and secret, one for an IV; for each block one of its
    // position, one of its side if there are two, four of ciphertext, one or two of masks, four of
    // revealed bytes.
    let (first_block, values, recorded) = match server {
        ServerData::TrafficSecret(_) => (12, 10, 6),
        ServerData::Proved(_) => (11, 12, 8),
    };
    let recorded = (1..record.inputs.len()).filter(|at| match at {
        1..=4 => true,
        block if *block >= first_block => (block - first_block) % values < recorded,
        _ => false,
    });
    secret.chain(recorded).collect()
}

fn recorded(server: ServerData) -> Record {
    let mut record = Record::new();
    synthesize(&mut record, &statement(server), &[5; 32]).unwrap();
    let constraints = record.constraints.len();
    assert!((0..constraints).all(|at| record.holds(at)), "the honest assignment satisfies it");
    record
}

#[test]
fn the_secret_and_what_was_recorded_determine_everything() {
    for server in KINDS {
        let record = recorded(server);
        let uses = record.uses();
        let audit = Audit::of(&record, &uses, &given(&record, server), None);
        println!(
            "{server:?}: {} constraints, {} public values, {} witnesses",
            record.constraints.len(),
            record.inputs.len() - 1,
            record.witness.len(),
        );
        let (free, loose) = (audit.undetermined(), audit.loose());
        assert_eq!((free.len(), loose.len()), (0, 0), "free: {free:?}, loose: {loose:?}");
    }
}

/// The audit can fail: without the secret, an input, or any one constraint that it used, a value is
/// undetermined.
#[test]
fn whatever_is_left_out_is_found() {
    KINDS.into_iter().for_each(leave_out);
}

fn leave_out(server: ServerData) {
    let record = recorded(server);
    let uses = record.uses();
    let given = given(&record, server);
    let whole = Audit::of(&record, &uses, &given, None);
    for left_out in [0, 255, 256, 260, given.len() - 1] {
        let mut fewer = given.clone();
        fewer.remove(left_out);
        let audit = Audit::of(&record, &uses, &fewer, None);
        assert!(!audit.undetermined().is_empty(), "given without {left_out}");
    }
    let needed: Vec<_> = whole.by.iter().flatten().copied().collect();
    let count = needed.len();
    for at in 0..16 {
        let constraint = needed[at * (count - 1) / 15];
        let audit = Audit::of(&record, &uses, &given, Some(constraint));
        assert!(!audit.undetermined().is_empty(), "without constraint {constraint}");
    }
}
