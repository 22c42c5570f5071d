//! Hashes of a Merkle tree and the proofs over them (RFC 6962, section 2.1).

use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
use sha2::{Digest as _, Sha256};

use super::{MAX_PATH_HASHES, MAX_TREE_SIZE, TlogError};

/// A SHA-256 hash in a tree.
pub type Hash = [u8; 32];

/// Returns the leaf hash of an entry.
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(entry).finalize().into()
}

/// Returns the hash of two subtrees.
pub(super) fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// Returns the hash of the empty tree.
pub(super) fn empty_hash() -> Hash {
    Sha256::digest([]).into()
}

/// Returns the root of a perfect tree over subtrees of one height; their number is a power of two.
pub(super) fn perfect_hash(hashes: &[Hash]) -> Hash {
    match hashes {
        [] => empty_hash(),
        [hash] => *hash,
        hashes => {
            let (left, right) = hashes.split_at_checked(hashes.len() / 2).unwrap_or((hashes, &[]));
            node_hash(&perfect_hash(left), &perfect_hash(right))
        }
    }
}

/// Verifies that an entry has this index in the tree of this size and root. `path` starts with the
/// hash of the leaf's sibling.
///
/// # Errors
/// [`TlogError::NotIncluded`] if it does not.
pub fn verify_inclusion(
    entry: &[u8],
    index: u64,
    size: u64,
    path: &[Hash],
    root: &Hash,
) -> Result<(), TlogError> {
    // The crate's arithmetic would overflow above this limit.
    if size > MAX_TREE_SIZE || index >= size || path.len() > MAX_PATH_HASHES {
        return Err(TlogError::NotIncluded);
    }
    let proof = InclusionProof::<Sha256>::try_from_bytes(path.concat());
    let proof = proof.map_err(|_| TlogError::NotIncluded)?;
    let root = RootHash::<Sha256>::new((*root).into(), size);
    root.verify_inclusion(&entry, index, &proof).map_err(|_| TlogError::NotIncluded)
}

/// Verifies that an older tree is a prefix of the tree of `size` and `root`. `path` is as in RFC
/// 6962, section 2.1.2. The empty tree is a prefix of every tree.
///
/// # Errors
/// [`TlogError::Inconsistent`] if it is not.
pub fn verify_consistency(
    (old_size, old_root): (u64, &Hash),
    (size, root): (u64, &Hash),
    path: &[Hash],
) -> Result<(), TlogError> {
    if size > MAX_TREE_SIZE || old_size > size || path.len() > MAX_PATH_HASHES {
        return Err(TlogError::Inconsistent);
    }
    let holds = if old_size == 0 {
        // RFC 6962 defines no proof here; there is nothing to prove.
        path.is_empty() && *old_root == empty_hash() && (size > 0 || root == old_root)
    } else {
        let old = RootHash::<Sha256>::new((*old_root).into(), old_size);
        let new = RootHash::<Sha256>::new((*root).into(), size);
        ConsistencyProof::<Sha256>::try_from_bytes(path.concat())
            .is_ok_and(|proof| new.verify_consistency(&old, &proof).is_ok())
    };
    if holds { Ok(()) } else { Err(TlogError::Inconsistent) }
}

#[cfg(test)]
mod tests;
