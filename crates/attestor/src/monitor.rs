//! Follows an attestor's log from outside: whether it only ever grows, whether its files are those
//! of its checkpoints, and whether it was ever told otherwise.
//!
//! **Invariant:** the tree is computed again from the entries that are served, beginning with what
//! was remembered; nothing that the log says about its own past is believed.

mod source;
mod state;

use std::{path::PathBuf, time::Duration};

use attestation::{
    signed::hex,
    tlog::{
        BadLog, Checkpoint, Hash, MAX_ENTRY_BYTES, MAX_NOTE_BYTES, NoteKey, RightEdge,
        SignedCheckpoint, TILE_WIDTH, Tile, entries_path, leaf_hash, read_bundle,
    },
};

use self::{source::Source, state::State};
use crate::log::write_durably;

const CHECKPOINT: &str = "checkpoint";
/// Entries that one look goes through; a log that grew by more was not followed.
const MOST_ENTRIES: u64 = 1 << 24;

/// Why a log is not well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    #[error("the log was rewritten: {0}")]
    Rewritten(String),
    #[error("the log was rolled back: it had {had} entries and has {has}")]
    RolledBack { had: u64, has: u64 },
    #[error("the log's checkpoint is refused: {0}")]
    Signature(BadLog),
    #[error("the log cannot be reached: {0}")]
    Unreachable(String),
    #[error("the log cannot be followed: {0}")]
    State(String),
}

impl Finding {
    /// The exit code of `avouch-attestor monitor`.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Rewritten(_) => 10,
            Self::RolledBack { .. } => 11,
            Self::Signature(_) => 12,
            Self::Unreachable(_) => 13,
            Self::State(_) => 14,
        }
    }
}

/// A log that is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub checkpoint: Checkpoint,
    /// Entries that were gone through for the first time.
    pub new: u64,
}

impl Seen {
    /// One line for a script.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "origin": self.checkpoint.origin,
            "size": self.checkpoint.size,
            "root": hex(&self.checkpoint.root),
            "newEntries": self.new,
        })
    }
}

/// Follows one log.
pub struct Monitor {
    source: Source,
    key: NoteKey,
    state: PathBuf,
}

impl Monitor {
    /// A monitor of the log at an address or in a folder, whose checkpoints this key signs; what it
    /// saw is remembered in a file.
    ///
    /// # Errors
    /// Where the address or the key cannot be used.
    pub fn new(log: &str, key: &str, state: PathBuf) -> Result<Self, Finding> {
        let key = NoteKey::parse(key.trim());
        let key = key.map_err(|error| Finding::State(format!("its key: {error}")))?;
        Ok(Self { source: Source::new(log)?, key, state })
    }

    /// Looks once, or again and again where there is an interval: then what cannot be reached is
    /// told in the program's log and tried again.
    ///
    /// # Errors
    /// The first thing that is wrong with the log.
    pub async fn watch(
        &self,
        interval: Option<Duration>,
        all: bool,
        tell: impl Fn(&Seen),
    ) -> Result<(), Finding> {
        loop {
            match (self.look(all).await, interval) {
                (Ok(seen), _) => tell(&seen),
                (Err(Finding::Unreachable(why)), Some(_)) => {
                    eprintln!("avouch-attestor: the log cannot be reached: {why}");
                }
                (Err(finding), _) => return Err(finding),
            }
            match interval {
                Some(interval) => tokio::time::sleep(interval).await,
                None => return Ok(()),
            }
        }
    }

    /// Looks at the log, and remembers it where it is well. A signed checkpoint that contradicts
    /// what was remembered is kept beside the state, with `.refused` after its name: both together
    /// are the evidence against the log.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn look(&self, all: bool) -> Result<Seen, Finding> {
        let old = State::read(&self.state, &self.key).map_err(Finding::State)?;
        let bytes = self.source.get(CHECKPOINT, MAX_NOTE_BYTES).await?;
        let bytes = bytes.ok_or_else(|| Finding::Unreachable("it has no checkpoint".into()))?;
        let signed = SignedCheckpoint::parse(&bytes).map_err(Finding::Signature)?;
        let new = signed.verify(&self.key).map_err(Finding::Signature)?.clone();
        match self.grown(&old, &new, all).await {
            Ok(edge) => {
                let before = old.edge.size();
                let state = State { checkpoint: Some(signed), edge };
                state.write(&self.state, &self.key).map_err(Finding::State)?;
                Ok(Seen { new: new.size - before, checkpoint: new })
            }
            Err(finding) => {
                if matches!(finding, Finding::Rewritten(_) | Finding::RolledBack { .. }) {
                    let mut beside = self.state.clone().into_os_string();
                    beside.push(".refused");
                    let kept = write_durably(beside.as_ref(), &bytes);
                    kept.map_err(|error| Finding::State(format!("{finding}; {error}")))?;
                }
                Err(finding)
            }
        }
    }

    /// The right edge of the new tree, computed from the old one's and the entries that came.
    async fn grown(&self, old: &State, new: &Checkpoint, all: bool) -> Result<RightEdge, Finding> {
        let (had, has) = (old.edge.size(), new.size);
        if has < had {
            return Err(Finding::RolledBack { had, has });
        }
        let mut edge = if all { RightEdge::default() } else { old.edge.clone() };
        if has - edge.size() > MOST_ENTRIES {
            return Err(Finding::State(format!("it has more than {MOST_ENTRIES} new entries")));
        }
        let width = u64::from(TILE_WIDTH);
        // The last bundle is looked at again where nothing came.
        for index in edge.size().min(has.saturating_sub(1)) / width..has.div_ceil(width) {
            let leaves = self.leaves(index, has).await?;
            let known = usize::try_from(edge.size() - index * width).unwrap_or_default();
            let (again, come) = leaves.split_at_checked(known).unwrap_or((&leaves, &[]));
            let remembered = edge.levels().first().map(Vec::as_slice).unwrap_or_default();
            if known < usize::from(TILE_WIDTH) && again != remembered {
                return Err(rewritten(&entries_path(index, TILE_WIDTH)));
            }
            for leaf in come {
                let full = edge.push(*leaf).map_err(|error| Finding::State(error.to_string()))?;
                for tile in full {
                    self.compare(&tile).await?;
                }
                if edge.size() == had && edge.root() != old.edge.root() {
                    let why = format!("the first {had} entries are others than before");
                    return Err(Finding::Rewritten(why));
                }
            }
        }
        if edge.root() != new.root {
            let why = format!("its entries are not those of the checkpoint of {has}");
            return Err(Finding::Rewritten(why));
        }
        for tile in edge.partial_tiles() {
            self.compare(&tile).await?;
        }
        Ok(edge)
    }

    /// The hashes of a bundle's entries in a tree of this size.
    async fn leaves(&self, index: u64, size: u64) -> Result<Vec<Hash>, Finding> {
        let width = size - index * u64::from(TILE_WIDTH);
        let width = u16::try_from(width).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
        let path = entries_path(index, width);
        let longest = usize::from(TILE_WIDTH) * (2 + MAX_ENTRY_BYTES);
        let (bytes, found) = match self.source.get(&path, longest).await? {
            Some(bytes) => (bytes, width),
            // The log may have grown meanwhile, and have the full bundle alone.
            None => (self.there(&entries_path(index, TILE_WIDTH), longest).await?, TILE_WIDTH),
        };
        let entries = read_bundle(&bytes, found);
        let entries = entries.map_err(|error| Finding::Rewritten(format!("{path}: {error}")))?;
        Ok(entries.into_iter().take(width.into()).map(leaf_hash).collect())
    }

    /// Whether the log serves a tile as it has to be.
    async fn compare(&self, tile: &Tile) -> Result<(), Finding> {
        let bytes = tile.bytes();
        let (path, longest) = (tile.path(), usize::from(TILE_WIDTH) * 32);
        let found = match self.source.get(&path, longest).await? {
            Some(found) => found,
            None if tile.is_full() => return Err(missing(&path)),
            None => {
                let full = path.rsplit_once(".p/").map_or(path.as_str(), |(full, _)| full);
                let mut found = self.there(full, longest).await?;
                found.truncate(bytes.len());
                found
            }
        };
        if found == bytes { Ok(()) } else { Err(rewritten(&path)) }
    }

    async fn there(&self, path: &str, longest: usize) -> Result<Vec<u8>, Finding> {
        self.source.get(path, longest).await?.ok_or_else(|| missing(path))
    }
}

fn missing(path: &str) -> Finding {
    Finding::Unreachable(format!("{path} is missing"))
}

fn rewritten(path: &str) -> Finding {
    Finding::Rewritten(format!("{path} is not as it was"))
}

#[cfg(test)]
mod tests;
