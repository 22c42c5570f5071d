//! Monitors an attestor's log from outside: checks that it is append-only, that its files match its
//! checkpoints, and that it never published a different history.
//!
//! **Invariant:** the tree is computed again from the served entries, starting with the saved
//! state; no statement of the log about its own past is trusted.

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
/// Maximum number of new entries in one check; a log that grew by more was not monitored.
const MOST_ENTRIES: u64 = 1 << 24;

/// Why a check of a log failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    #[error("the log was rewritten: {0}")]
    Rewritten(String),
    #[error("the log was rolled back: it had {previous} entries and has {current}")]
    RolledBack { had: u64, has: u64 },
    #[error("the log's checkpoint is refused: {0}")]
    Signature(BadLog),
    #[error("failed to reach the log: {0}")]
    Unreachable(String),
    #[error("failed to monitor the log: {0}")]
    State(String),
}

impl Finding {
    /// Returns the exit code of `avouch-attestor monitor`.
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

/// The result of a successful check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub checkpoint: Checkpoint,
    /// Number of entries that were checked for the first time.
    pub new: u64,
}

impl Seen {
    /// Returns one line for a script.
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

/// Monitors one log.
pub struct Monitor {
    source: Source,
    key: NoteKey,
    state: PathBuf,
}

impl Monitor {
    /// Creates a monitor of the log at an address or in a folder. Its checkpoints must be signed by
    /// `key`, and `state` is the file for the last verified state.
    ///
    /// # Errors
    /// The address or the key is malformed.
    pub fn new(log: &str, key: &str, state: PathBuf) -> Result<Self, Finding> {
        let key = NoteKey::parse(key.trim());
        let key = key.map_err(|error| Finding::State(format!("its key: {error}")))?;
        Ok(Self { source: Source::new(log)?, key, state })
    }

    /// Checks once, or repeatedly if there is an interval. With an interval an unreachable log is
    /// reported on the standard error and tried again.
    ///
    /// # Errors
    /// Returns the first problem of the log.
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
                    eprintln!("avouch-attestor: failed to reach the log, which is tried again: {why}");
                }
                (Err(finding), _) => return Err(finding),
            }
            match interval {
                Some(interval) => tokio::time::sleep(interval).await,
                None => return Ok(()),
            }
        }
    }

    /// Checks the log, and saves its state if it is consistent. A signed checkpoint that
    /// contradicts the saved state is kept next to the state file, with the suffix `.refused`: both
    /// together are the evidence against the log.
    ///
    /// # Errors
    /// Returns the first problem of the log.
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

    /// Computes the right edge of the new tree from that of the old one and the new entries.
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
        // Without new entries the last bundle is checked again.
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
                    let why = format!("the first {had} entries have changed");
                    return Err(Finding::Rewritten(why));
                }
            }
        }
        if edge.root() != new.root {
            let why = format!("its entries do not match the checkpoint of size {has}");
            return Err(Finding::Rewritten(why));
        }
        for tile in edge.partial_tiles() {
            self.compare(&tile).await?;
        }
        Ok(edge)
    }

    /// Returns the leaf hashes of a bundle's entries in a tree of this size.
    async fn leaves(&self, index: u64, size: u64) -> Result<Vec<Hash>, Finding> {
        let width = size - index * u64::from(TILE_WIDTH);
        let width = u16::try_from(width).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
        let path = entries_path(index, width);
        let longest = usize::from(TILE_WIDTH) * (2 + MAX_ENTRY_BYTES);
        let (bytes, found) = match self.source.get(&path, longest).await? {
            Some(bytes) => (bytes, width),
            // The log may have grown meanwhile and have only the full bundle.
            None => (self.there(&entries_path(index, TILE_WIDTH), longest).await?, TILE_WIDTH),
        };
        let entries = read_bundle(&bytes, found);
        let entries = entries.map_err(|error| Finding::Rewritten(format!("{path}: {error}")))?;
        Ok(entries.into_iter().take(width.into()).map(leaf_hash).collect())
    }

    /// Checks that the log serves a tile with the expected content.
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
    Finding::Rewritten(format!("{path} has changed"))
}

#[cfg(test)]
mod tests;
