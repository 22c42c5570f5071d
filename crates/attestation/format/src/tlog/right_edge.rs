//! The partial tiles at the right edge of a tree, which are the state for appending.

use super::{
    Hash, MAX_TREE_SIZE, TILE_WIDTH, Tile, TlogError,
    merkle::{empty_hash, node_hash, perfect_hash},
};

/// The partial tiles of a tree. They determine its root, the inclusion proof of the next entry, and
/// the tiles that this entry changes; at most six tiles for any size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RightEdge {
    size: u64,
    /// By level, fewer than [`TILE_WIDTH`] each.
    levels: Vec<Vec<Hash>>,
}

impl RightEdge {
    /// Creates the edge of a tree of this size from its partial tiles by level.
    ///
    /// # Errors
    /// Their widths do not match the size.
    pub fn new(size: u64, levels: Vec<Vec<Hash>>) -> Result<Self, TlogError> {
        if size > MAX_TREE_SIZE {
            return Err(TlogError::Full);
        }
        let mut rest = size;
        for hashes in &levels {
            if u64::try_from(hashes.len()) != Ok(rest % u64::from(TILE_WIDTH)) {
                return Err(TlogError::Malformed("a partial tile has the wrong width"));
            }
            rest /= u64::from(TILE_WIDTH);
        }
        if rest > 0 || levels.len() > 8 {
            return Err(TlogError::Malformed("there are too few or too many levels"));
        }
        Ok(Self { size, levels })
    }

    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the hashes of its partial tiles by level; a level may be empty.
    #[must_use]
    pub fn levels(&self) -> &[Vec<Hash>] {
        &self.levels
    }

    /// Appends an entry's hash and returns the tiles that it completes, the lowest first.
    ///
    /// # Errors
    /// The tree has the maximum size.
    pub fn push(&mut self, leaf: Hash) -> Result<Vec<Tile>, TlogError> {
        if self.size >= MAX_TREE_SIZE {
            return Err(TlogError::Full);
        }
        let mut index = self.size;
        self.size += 1;
        let (mut full, mut hash) = (vec![], leaf);
        for level in 0.. {
            index /= u64::from(TILE_WIDTH);
            let at = usize::from(level);
            if self.levels.len() <= at {
                self.levels.push(vec![]);
            }
            let Some(hashes) = self.levels.get_mut(at) else { break };
            hashes.push(hash);
            if hashes.len() < usize::from(TILE_WIDTH) {
                break;
            }
            let hashes = std::mem::take(hashes);
            hash = perfect_hash(&hashes);
            full.push(Tile { level, index, hashes });
        }
        Ok(full)
    }

    /// Returns the partial tiles, which must exist as files while the tree has this size.
    #[must_use]
    pub fn partial_tiles(&self) -> Vec<Tile> {
        let mut index = self.size;
        let tile = |(level, hashes): (u8, &Vec<Hash>)| {
            index /= u64::from(TILE_WIDTH);
            let hashes = hashes.clone();
            (!hashes.is_empty()).then_some(Tile { level, index, hashes })
        };
        (0..).zip(&self.levels).filter_map(tile).collect()
    }

    /// Returns the root of the tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut trees = self.perfect_trees().into_iter().rev();
        let smallest = trees.next().unwrap_or_else(empty_hash);
        trees.fold(smallest, |right, left| node_hash(&left, &right))
    }

    /// Returns the inclusion proof of the next entry in the tree that it creates.
    #[must_use]
    pub fn next_path(&self) -> Vec<Hash> {
        let mut trees = self.perfect_trees();
        trees.reverse();
        trees
    }

    /// Returns the roots of the perfect subtrees, the largest first.
    fn perfect_trees(&self) -> Vec<Hash> {
        let mut trees = vec![];
        for hashes in self.levels.iter().rev() {
            let mut rest = hashes.as_slice();
            for width in (0..8).rev().map(|bit| 1 << bit) {
                if hashes.len() & width != 0
                    && let Some((tree, after)) = rest.split_at_checked(width)
                {
                    trees.push(perfect_hash(tree));
                    rest = after;
                }
            }
        }
        trees
    }
}
