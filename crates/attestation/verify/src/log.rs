//! Verifies that an attestation is in its attestor's log, and that this log is consistent with a
//! checkpoint that was obtained elsewhere.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use attestation::{
    signed::{Attestation, Issuer},
    tlog::{
        Checkpoint, LogProof, MAX_ENTRY_BYTES, MAX_NOTE_BYTES, NoteKey, RightEdge,
        SignedCheckpoint, TILE_WIDTH, TlogError, entries_path, leaf_hash, read_bundle,
    },
};
use clap::Args;
use serde_json::{Value, json};

use crate::{error::VerifyError, input::read};

/// Maximum number of entries that are read for `--checkpoint`.
const MAX_ENTRIES: u64 = 1 << 24;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The attestor's log")]
pub(crate) struct LogOptions {
    /// The attestation's inclusion proof (inclusion.tlog-proof); a portable attestation contains it
    #[arg(long, value_name = "FILE")]
    pub(crate) inclusion: Option<PathBuf>,
    /// The key of the log that must contain it, as `avouch-attestor log-key` prints it
    #[arg(long, value_name = "VKEY")]
    log: Option<LogKeyArgument>,
    /// A checkpoint of that log from another source, in a copy of the log's folder: it must be
    /// consistent with the checkpoint of the inclusion proof
    #[arg(long, value_name = "FILE", requires = "log")]
    checkpoint: Option<PathBuf>,
}

/// A log's verifier key as an argument.
#[derive(Debug, Clone)]
struct LogKeyArgument(NoteKey);

impl FromStr for LogKeyArgument {
    type Err = TlogError;

    fn from_str(text: &str) -> Result<Self, TlogError> {
        NoteKey::parse(text).map(Self)
    }
}

/// A verified inclusion of an attestation in a log.
pub(crate) struct LogInclusion {
    checkpoint: Checkpoint,
    index: u64,
    /// Owner of the key that verified the checkpoint.
    by: &'static str,
    /// Number of entries of the log's copy from another source.
    copy_size: Option<u64>,
}

/// Why an attestation is not known to be in a log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogInclusionError {
    #[error("there is no proof that it is in the log: see --inclusion")]
    Missing,
    #[error("the inclusion proof is refused: {0}")]
    Inclusion(TlogError),
    #[error("the checkpoint of the log's copy is refused: {0}")]
    Checkpoint(TlogError),
    #[error("the log's copy has {0} entries, fewer than when the attestation was logged")]
    CopyTooShort(u64),
    #[error(
        "the log's copy is inconsistent with the log of the inclusion proof: it is another one"
    )]
    Forked,
    #[error("the log's copy has more than {MAX_ENTRIES} entries, the maximum")]
    CopyTooLarge,
}

impl LogOptions {
    /// Returns the names of the given expectations of the log.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.log.iter().map(|_| "log")
    }

    /// Verifies an inclusion proof: with the expected log's key if there is one, or else with the
    /// attestation's key, with which the attestor cosigns its checkpoints.
    pub(crate) fn check(
        &self,
        attestation: &Attestation,
        issuer: Option<&Issuer>,
        inclusion: Option<&[u8]>,
    ) -> Result<Option<LogInclusion>, VerifyError> {
        let Some(bytes) = inclusion else {
            return if self.log.is_some() {
                Err(LogInclusionError::Missing.into())
            } else {
                Ok(None)
            };
        };
        let proof = LogProof::read(bytes).map_err(LogInclusionError::Inclusion)?;
        let (key, by) = if let Some(LogKeyArgument(key)) = &self.log {
            (key.clone(), "log")
        } else {
            let key = issuer.and_then(Issuer::key).ok_or(LogInclusionError::Missing)?;
            (proof.key_of(&key).map_err(LogInclusionError::Inclusion)?, "attestation")
        };
        let checkpoint = proof.verify_attestation(attestation, &key);
        let checkpoint = checkpoint.map_err(LogInclusionError::Inclusion)?.clone();
        let seen =
            self.checkpoint.as_deref().map(|file| check_consistency(file, &key, &checkpoint));
        let seen = seen.transpose()?;
        Ok(Some(LogInclusion { checkpoint, index: proof.index, by, copy_size: seen }))
    }
}

impl LogInclusion {
    pub(crate) fn proves(&self) -> String {
        let Checkpoint { origin, size, .. } = &self.checkpoint;
        let index = self.index;
        let copy = self
            .copy_size
            .map(|copy_size| format!(", which is a prefix of the copy with {copy_size} entries"));
        format!(
            "the log {origin} has the attestation as entry {index}: a checkpoint of {size} entries \
             covers it, signed with the key of the {}{}",
            self.by,
            copy.unwrap_or_default()
        )
    }

    /// Returns the assumption about the log, whether or not the attestation was found in it.
    pub(crate) fn assumes(logged: Option<&Self>) -> String {
        match logged {
            None => "the attestor logged it: there is no proof of that here".to_owned(),
            Some(Self { copy_size: None, .. }) => {
                "the checkpoint is one of the log that all clients see: \
                compare it with the checkpoint of a monitor (--checkpoint)"
                    .to_owned()
            }
            Some(Self { copy_size: Some(_), .. }) => {
                "the source of the log's copy saw the same log as all \
                other clients"
                    .to_owned()
            }
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "origin": self.checkpoint.origin,
            "index": self.index,
            "treeSize": self.checkpoint.size,
            "verifiedBy": self.by,
            "seenSize": self.copy_size,
        })
    }
}

/// Checks that a log's copy is consistent with the checkpoint of an inclusion proof. Returns the
/// copy's number of entries. The tree is computed from the entries next to the checkpoint.
fn check_consistency(file: &Path, key: &NoteKey, logged: &Checkpoint) -> Result<u64, VerifyError> {
    let note = read(file, MAX_NOTE_BYTES)?;
    let signed = SignedCheckpoint::parse(&note).map_err(LogInclusionError::Checkpoint)?;
    let copy = signed.verify(key).map_err(LogInclusionError::Checkpoint)?;
    if copy.size < logged.size {
        return Err(LogInclusionError::CopyTooShort(copy.size).into());
    }
    if copy.size == logged.size {
        return if copy == logged { Ok(copy.size) } else { Err(LogInclusionError::Forked.into()) };
    }
    if copy.size > MAX_ENTRIES {
        return Err(LogInclusionError::CopyTooLarge.into());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut edge = RightEdge::default();
    for index in 0..copy.size.div_ceil(TILE_WIDTH.into()) {
        for leaf in leaves(folder, index, copy.size)? {
            edge.push(leaf).map_err(LogInclusionError::Checkpoint)?;
            if edge.size() == logged.size && edge.root() != logged.root {
                return Err(LogInclusionError::Forked.into());
            }
        }
    }
    if edge.root() == copy.root { Ok(copy.size) } else { Err(LogInclusionError::Forked.into()) }
}

/// Returns the leaf hashes of a bundle's entries in a log of this size.
fn leaves(folder: &Path, index: u64, size: u64) -> Result<Vec<[u8; 32]>, VerifyError> {
    let width = size - index * u64::from(TILE_WIDTH);
    let width = u16::try_from(width).unwrap_or(TILE_WIDTH).min(TILE_WIDTH);
    let max_bytes = usize::from(TILE_WIDTH) * (2 + MAX_ENTRY_BYTES);
    let part = folder.join(entries_path(index, width));
    // A later copy may have only the full bundle.
    let (path, found) = if part.exists() {
        (part, width)
    } else {
        (folder.join(entries_path(index, TILE_WIDTH)), TILE_WIDTH)
    };
    let bytes = read(&path, max_bytes)?;
    let entries = read_bundle(&bytes, found).map_err(LogInclusionError::Checkpoint)?;
    Ok(entries.into_iter().take(width.into()).map(leaf_hash).collect())
}
