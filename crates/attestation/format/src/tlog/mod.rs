//! The transparency log of an attestor, according to the C2SP specifications: the format of
//! entries, tiles and checkpoints, and the proofs of inclusion and consistency.
//!
//! Hashing follows RFC 6962, section 2.1, with SHA-256. Files follow
//! [tlog-tiles](https://c2sp.org/tlog-tiles), a tree head is a
//! [tlog-checkpoint](https://c2sp.org/tlog-checkpoint) with the signatures of a
//! [signed-note](https://c2sp.org/signed-note), and the holder of an attestation receives a
//! [tlog-proof](https://c2sp.org/tlog-proof).
//!
//! **Invariant:** all input is untrusted. Its length is limited before it is parsed, and the sizes
//! and indexes of a tree by [`MAX_TREE_SIZE`] before any computation with them.

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

/// Maximum number of entries of a log.
pub const MAX_TREE_SIZE: u64 = 1 << 40;
/// Maximum length of a signed note.
pub const MAX_NOTE_BYTES: usize = 4096;
/// Maximum number of hashes of an inclusion or consistency proof.
pub const MAX_PATH_HASHES: usize = 64;
/// Maximum length of a tlog-proof.
pub const MAX_PROOF_BYTES: usize = 8192;

const ENTRY_LABEL: &[u8] = b"avouch/attestation-log-entry/v1\0";

/// Why a part of a log is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlogError {
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
    #[error("it is malformed: {0}")]
    Malformed(&'static str),
    #[error("it has no signature by the key of {0}")]
    Unsigned(String),
    #[error("its signature by the key of {0} is invalid")]
    Signature(String),
    #[error("it is a checkpoint of the log {0}, which is another one")]
    Origin(String),
    #[error("the attestation states another index in the log")]
    Index,
    #[error("the entry is not in the tree of the checkpoint")]
    NotIncluded,
    #[error("the older tree is not a prefix of the newer one")]
    Inconsistent,
    #[error("a log has at most {MAX_TREE_SIZE} entries")]
    Full,
}

/// Returns the log's entry for an attestation, from the 32 bytes of its
/// [`crate::signed::Attestation::proof_hash`]. It reveals nothing about the attestation, because
/// the signed body contains 32 random bytes.
#[must_use]
pub fn entry(proof_hash: &[u8; 32]) -> Vec<u8> {
    [ENTRY_LABEL, proof_hash].concat()
}
