//! Whether an attestation is in its attestor's log, and whether that log is the one that others saw.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use attestation::{
    signed::{Attestation, Issuer},
    tlog::{
        BadLog, Checkpoint, LogProof, MAX_ENTRY_BYTES, MAX_NOTE_BYTES, NoteKey, RightEdge,
        SignedCheckpoint, TILE_WIDTH, entries_path, leaf_hash, read_bundle,
    },
};
use clap::Args;
use serde_json::{Value, json};

use crate::{failure::Failure, input::read};

/// Entries that are gone through for `--checkpoint`.
const MAX_ENTRIES: u64 = 1 << 24;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The attestor's log")]
pub(crate) struct LogOptions {
    /// The proof that it is in the log (inclusion.tlog-proof); a portable attestation has it in it
    #[arg(long, value_name = "FILE")]
    pub(crate) inclusion: Option<PathBuf>,
    /// The log that it has to be in: the key that `avouch-attestor log-key` prints
    #[arg(long, value_name = "VKEY")]
    log: Option<LogKey>,
    /// A checkpoint of that log that was seen elsewhere, in a copy of the log's folder: the log has
    /// to have grown to it from where the attestation was logged
    #[arg(long, value_name = "FILE", requires = "log")]
    checkpoint: Option<PathBuf>,
}

/// A log's key as an argument.
#[derive(Debug, Clone)]
struct LogKey(NoteKey);

impl FromStr for LogKey {
    type Err = BadLog;

    fn from_str(text: &str) -> Result<Self, BadLog> {
        NoteKey::parse(text).map(Self)
    }
}

/// Where an attestation was found.
pub(crate) struct Logged {
    checkpoint: Checkpoint,
    index: u64,
    /// By whose key the checkpoint was verified.
    by: &'static str,
    /// How many entries the log has that was seen elsewhere.
    seen: Option<u64>,
}

/// Why an attestation is not known to be in a log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotLogged {
    #[error("there is no proof that it is in the log: see --inclusion")]
    Missing,
    #[error("its place in the log is refused: {0}")]
    Inclusion(BadLog),
    #[error("the checkpoint that was seen is refused: {0}")]
    Seen(BadLog),
    #[error("the log that was seen has {0} entries, fewer than when it was logged")]
    Shorter(u64),
    #[error("the log that was seen is another one than it was logged in")]
    Forked,
    #[error(
        "the log that was seen has more than {MAX_ENTRIES} entries, which are not gone through"
    )]
    Large,
}

impl LogOptions {
    /// Names of what the attestation is held against.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.log.iter().map(|_| "log")
    }

    /// Verifies an inclusion proof: with the key of the log where one is expected, or else with the
    /// key of the attestation, by which the attestor signs the checkpoints it hands out too.
    pub(crate) fn hold(
        &self,
        attestation: &Attestation,
        issuer: Option<&Issuer>,
        inclusion: Option<&[u8]>,
    ) -> Result<Option<Logged>, Failure> {
        let Some(bytes) = inclusion else {
            return if self.log.is_some() { Err(NotLogged::Missing.into()) } else { Ok(None) };
        };
        let proof = LogProof::read(bytes).map_err(NotLogged::Inclusion)?;
        let (key, by) = if let Some(LogKey(key)) = &self.log {
            (key.clone(), "log")
        } else {
            let key = issuer.and_then(Issuer::key).ok_or(NotLogged::Missing)?;
            (proof.key_of(&key).map_err(NotLogged::Inclusion)?, "attestation")
        };
        let checkpoint = proof.verify_attestation(attestation, &key);
        let checkpoint = checkpoint.map_err(NotLogged::Inclusion)?.clone();
        let seen = self.checkpoint.as_deref().map(|file| seen(file, &key, &checkpoint));
        let seen = seen.transpose()?;
        Ok(Some(Logged { checkpoint, index: proof.index, by, seen }))
    }
}

impl Logged {
    pub(crate) fn proves(&self) -> String {
        let Checkpoint { origin, size, .. } = &self.checkpoint;
        let index = self.index;
        let seen = self.seen.map(|seen| {
            format!(", and the log of {seen} entries that was seen elsewhere begins with these")
        });
        format!(
            "the log {origin} has the attestation as entry {index}: a checkpoint of {size} entries \
             covers it, signed with the key of the {}{}",
            self.by,
            seen.unwrap_or_default()
        )
    }

    /// What has to be believed of the log, whether the attestation was found in it or not.
    pub(crate) fn assumes(logged: Option<&Self>) -> String {
        match logged {
            None => "the attestor logged it: there is no proof of that here".to_owned(),
            Some(Self { seen: None, .. }) => "the checkpoint is one of the log that everybody \
                sees: compare it with what a monitor of the log saw (--checkpoint)"
                .to_owned(),
            Some(Self { seen: Some(_), .. }) => "whoever gave the checkpoint that was seen \
                elsewhere saw the same log as everybody"
                .to_owned(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "origin": self.checkpoint.origin,
            "index": self.index,
            "treeSize": self.checkpoint.size,
            "verifiedBy": self.by,
            "seenSize": self.seen,
        })
    }
}

/// Whether the log that was seen begins with the tree that an attestation was logged in; how many
/// entries it has. The tree is computed from the entries beside the checkpoint.
fn seen(file: &Path, key: &NoteKey, logged: &Checkpoint) -> Result<u64, Failure> {
    let note = read(file, MAX_NOTE_BYTES)?;
    let signed = SignedCheckpoint::parse(&note).map_err(NotLogged::Seen)?;
    let seen = signed.verify(key).map_err(NotLogged::Seen)?;
    if seen.size < logged.size {
        return Err(NotLogged::Shorter(seen.size).into());
    }
    if seen.size == logged.size {
        return if seen == logged { Ok(seen.size) } else { Err(NotLogged::Forked.into()) };
    }
    if seen.size > MAX_ENTRIES {
        return Err(NotLogged::Large.into());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut edge = RightEdge::default();
    for index in 0..seen.size.div_ceil(TILE_WIDTH.into()) {
        for leaf in leaves(folder, index, seen.size)? {
            edge.push(leaf).map_err(NotLogged::Seen)?;
            if edge.size() == logged.size && edge.root() != logged.root {
                return Err(NotLogged::Forked.into());
            }
        }
    }
    if edge.root() == seen.root { Ok(seen.size) } else { Err(NotLogged::Forked.into()) }
}

/// The hashes of a bundle's entries in a log of this size.
fn leaves(folder: &Path, index: u64, size: u64) -> Result<Vec<[u8; 32]>, Failure> {
    let width = size - index * u64::from(TILE_WIDTH);
    let width = u16::try_from(width).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
    let longest = usize::from(TILE_WIDTH) * (2 + MAX_ENTRY_BYTES);
    let part = folder.join(entries_path(index, width));
    // A copy that was made later may have the full bundle alone.
    let (path, found) = if part.exists() {
        (part, width)
    } else {
        (folder.join(entries_path(index, TILE_WIDTH)), TILE_WIDTH)
    };
    let bytes = read(&path, longest)?;
    let entries = read_bundle(&bytes, found).map_err(NotLogged::Seen)?;
    Ok(entries.into_iter().take(width.into()).map(leaf_hash).collect())
}
