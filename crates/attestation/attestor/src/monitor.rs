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
        Checkpoint, Hash, MAX_ENTRY_BYTES, MAX_NOTE_BYTES, NoteKey, RightEdge, SignedCheckpoint,
        TILE_WIDTH, Tile, TlogError, entries_path, leaf_hash, read_bundle,
    },
};

use self::{source::LogSource, state::MonitorState};
use crate::log::write_durably;

const CHECKPOINT: &str = "checkpoint";
/// Maximum number of new entries in one check; a log that grew by more was not monitored.
const MAX_NEW_ENTRIES: u64 = 1 << 24;

/// Why a check of a log failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    #[error("the log was rewritten: {0}")]
    Rewritten(String),
    #[error("the log was rolled back: it had {previous} entries and has {current}")]
    RolledBack { previous: u64, current: u64 },
    #[error("the log's checkpoint is refused: {0}")]
    Signature(TlogError),
    #[error("failed to reach the log: {0}")]
    Unreachable(String),
    #[error("failed to monitor the log: {0}")]
    State(String),
}

impl MonitorError {
    /// Returns the exit code of `avouch-attestor monitor`.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
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
pub struct VerifiedLog {
    pub checkpoint: Checkpoint,
    /// Number of entries that were checked for the first time.
    pub new_entries: u64,
}

impl VerifiedLog {
    /// Returns one line for a script.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "origin": self.checkpoint.origin,
            "size": self.checkpoint.size,
            "root": hex(&self.checkpoint.root),
            "newEntries": self.new_entries,
        })
    }
}

/// Monitors one log.
pub struct Monitor {
    source: LogSource,
    key: NoteKey,
    state: PathBuf,
}

impl Monitor {
    /// Creates a monitor of the log at an address or in a folder. Its checkpoints must be signed by
    /// `key`, and `state` is the file for the last verified state.
    ///
    /// # Errors
    /// The address or the key is malformed.
    pub fn new(log: &str, key: &str, state: PathBuf) -> Result<Self, MonitorError> {
        let key = NoteKey::parse(key.trim());
        let key = key.map_err(|error| MonitorError::State(format!("its key: {error}")))?;
        Ok(Self { source: LogSource::new(log)?, key, state })
    }

    /// Checks once, or repeatedly if there is an interval. With an interval an unreachable log is
    /// reported on the standard error and tried again.
    ///
    /// # Errors
    /// Returns the first problem of the log.
    pub async fn run(
        &self,
        interval: Option<Duration>,
        all: bool,
        report: impl Fn(&VerifiedLog),
    ) -> Result<(), MonitorError> {
        loop {
            match (self.check(all).await, interval) {
                (Ok(verified), _) => report(&verified),
                (Err(MonitorError::Unreachable(why)), Some(_)) => {
                    eprintln!(
                        "avouch-attestor: failed to reach the log, which is tried again: {why}"
                    );
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
    pub async fn check(&self, all: bool) -> Result<VerifiedLog, MonitorError> {
        let old = MonitorState::read(&self.state, &self.key).map_err(MonitorError::State)?;
        let bytes = self.source.get(CHECKPOINT, MAX_NOTE_BYTES).await?;
        let bytes =
            bytes.ok_or_else(|| MonitorError::Unreachable("it has no checkpoint".into()))?;
        let signed = SignedCheckpoint::parse(&bytes).map_err(MonitorError::Signature)?;
        let new = signed.verify(&self.key).map_err(MonitorError::Signature)?.clone();
        match self.extend_edge(&old, &new, all).await {
            Ok(edge) => {
                let before = old.edge.size();
                let state = MonitorState { checkpoint: Some(signed), edge };
                state.write(&self.state, &self.key).map_err(MonitorError::State)?;
                Ok(VerifiedLog { new_entries: new.size - before, checkpoint: new })
            }
            Err(finding) => {
                if matches!(finding, MonitorError::Rewritten(_) | MonitorError::RolledBack { .. }) {
                    let mut refused = self.state.clone().into_os_string();
                    refused.push(".refused");
                    let saved = write_durably(refused.as_ref(), &bytes);
                    saved.map_err(|error| MonitorError::State(format!("{finding}; {error}")))?;
                }
                Err(finding)
            }
        }
    }

    /// Computes the right edge of the new tree from that of the old one and the new entries.
    async fn extend_edge(
        &self,
        old: &MonitorState,
        new: &Checkpoint,
        all: bool,
    ) -> Result<RightEdge, MonitorError> {
        let (previous, current) = (old.edge.size(), new.size);
        if current < previous {
            return Err(MonitorError::RolledBack { previous, current });
        }
        let mut edge = if all { RightEdge::default() } else { old.edge.clone() };
        if current - edge.size() > MAX_NEW_ENTRIES {
            return Err(MonitorError::State(format!(
                "it has more than {MAX_NEW_ENTRIES} new entries"
            )));
        }
        let width = u64::from(TILE_WIDTH);
        // Without new entries the last bundle is checked again.
        for index in edge.size().min(current.saturating_sub(1)) / width..current.div_ceil(width) {
            let leaves = self.leaves(index, current).await?;
            let known = usize::try_from(edge.size() - index * width).unwrap_or_default();
            let (known_leaves, new_leaves) =
                leaves.split_at_checked(known).unwrap_or((&leaves, &[]));
            let saved_leaves = edge.levels().first().map(Vec::as_slice).unwrap_or_default();
            if known < usize::from(TILE_WIDTH) && known_leaves != saved_leaves {
                return Err(rewritten(&entries_path(index, TILE_WIDTH)));
            }
            for leaf in new_leaves {
                let full =
                    edge.push(*leaf).map_err(|error| MonitorError::State(error.to_string()))?;
                for tile in full {
                    self.compare(&tile).await?;
                }
                if edge.size() == previous && edge.root() != old.edge.root() {
                    let why = format!("the first {previous} entries have changed");
                    return Err(MonitorError::Rewritten(why));
                }
            }
        }
        if edge.root() != new.root {
            let why = format!("its entries do not match the checkpoint of size {current}");
            return Err(MonitorError::Rewritten(why));
        }
        for tile in edge.partial_tiles() {
            self.compare(&tile).await?;
        }
        Ok(edge)
    }

    /// Returns the leaf hashes of a bundle's entries in a tree of this size.
    async fn leaves(&self, index: u64, size: u64) -> Result<Vec<Hash>, MonitorError> {
        let width = size - index * u64::from(TILE_WIDTH);
        let width = u16::try_from(width).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
        let path = entries_path(index, width);
        let max_bytes = usize::from(TILE_WIDTH) * (2 + MAX_ENTRY_BYTES);
        let (bytes, found) = match self.source.get(&path, max_bytes).await? {
            Some(bytes) => (bytes, width),
            // The log may have grown meanwhile and have only the full bundle.
            None => (
                self.fetch_required(&entries_path(index, TILE_WIDTH), max_bytes).await?,
                TILE_WIDTH,
            ),
        };
        let entries = read_bundle(&bytes, found);
        let entries =
            entries.map_err(|error| MonitorError::Rewritten(format!("{path}: {error}")))?;
        Ok(entries.into_iter().take(width.into()).map(leaf_hash).collect())
    }

    /// Checks that the log serves a tile with the expected content.
    async fn compare(&self, tile: &Tile) -> Result<(), MonitorError> {
        let bytes = tile.bytes();
        let (path, max_bytes) = (tile.path(), usize::from(TILE_WIDTH) * 32);
        let found = match self.source.get(&path, max_bytes).await? {
            Some(found) => found,
            None if tile.is_full() => return Err(missing(&path)),
            None => {
                let full = path.rsplit_once(".p/").map_or(path.as_str(), |(full, _)| full);
                let mut found = self.fetch_required(full, max_bytes).await?;
                found.truncate(bytes.len());
                found
            }
        };
        if found == bytes { Ok(()) } else { Err(rewritten(&path)) }
    }

    async fn fetch_required(&self, path: &str, max_bytes: usize) -> Result<Vec<u8>, MonitorError> {
        self.source.get(path, max_bytes).await?.ok_or_else(|| missing(path))
    }
}

fn missing(path: &str) -> MonitorError {
    MonitorError::Unreachable(format!("{path} is missing"))
}

fn rewritten(path: &str) -> MonitorError {
    MonitorError::Rewritten(format!("{path} has changed"))
}

#[cfg(test)]
mod tests;
