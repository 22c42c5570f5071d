//! The transparency log of an attestor, by the standards of C2SP: the form of its entries, tiles
//! and checkpoints, and the proofs that an entry is in it and that nothing in it was changed.
//!
//! Hashing is that of RFC 6962, section 2.1, with SHA-256. Files are those of
//! [tlog-tiles](https://c2sp.org/tlog-tiles), a head is a
//! [tlog-checkpoint](https://c2sp.org/tlog-checkpoint) with the signatures of a
//! [signed-note](https://c2sp.org/signed-note), and what a holder of an attestation is given is a
//! [tlog-proof](https://c2sp.org/tlog-proof).
//!
//! **Invariant:** everything that is read here may be anything. Its length is bounded before it is
//! read, and sizes and indexes of a tree by [`MAX_TREE_SIZE`] before anything is computed of them.

mod checkpoint;
mod merkle;
mod note;
mod proof;
mod right_edge;
mod tile;

pub use self::{
    checkpoint::{Checkpoint, SignedCheckpoint},
    merkle::{Hash, leaf_hash, verify_consistency, verify_inclusion},
    note::{NoteKey, is_key_name},
    proof::LogProof,
    right_edge::RightEdge,
    tile::{MAX_ENTRY_BYTES, TILE_WIDTH, Tile, entries_path, read_bundle, read_tile, write_bundle},
};

/// The most entries that a log may have.
pub const MAX_TREE_SIZE: u64 = 1 << 40;
/// The longest signed note, in bytes.
pub const MAX_NOTE_BYTES: usize = 4096;
/// The most hashes of an inclusion or a consistency proof.
pub const MAX_PATH_HASHES: usize = 64;
/// The longest tlog-proof, in bytes.
pub const MAX_PROOF_BYTES: usize = 8192;

const ENTRY: &[u8] = b"avouch/attestation-log-entry/v1\0";

/// Why something of a log is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLog {
    #[error("it is longer than {0} bytes")]
    Long(usize),
    #[error("it is malformed: {0}")]
    Form(&'static str),
    #[error("it has no signature by the key of {0}")]
    Unsigned(String),
    #[error("its signature by the key of {0} is wrong")]
    Signature(String),
    #[error("it is a checkpoint of the log {0}, which is another one")]
    Origin(String),
    #[error("the attestation names another place in the log")]
    Index,
    #[error("the entry is not in the tree of the checkpoint")]
    NotIncluded,
    #[error("the newer tree does not begin with the older one")]
    Inconsistent,
    #[error("a log has at most {MAX_TREE_SIZE} entries")]
    Full,
}

/// The log's entry for an attestation, from the 32 bytes of its
/// [`crate::signed::Attestation::proof_hash`]. It tells nothing of the attestation: the signed body
/// has 32 random bytes in it.
#[must_use]
pub fn entry(proof_hash: &[u8; 32]) -> Vec<u8> {
    [ENTRY, proof_hash].concat()
}
