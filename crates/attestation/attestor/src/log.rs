//! The attestor's transparency log: it has an entry for every attestation, in the order of signing.
//! An attestation is released only once a durable checkpoint covers its entry.
//!
//! The folder has two parts. `public` is the log itself, as static files that any web server can
//! serve (C2SP tlog-tiles): entries are hashes of attestations and reveal nothing about them.
//! `private` holds the journal with the attestations, and the key that signs checkpoints.
//!
//! **Invariant:** an entry is in the journal, on the disk, before anything is computed from it. The
//! next start completes from the journal what a crash interrupted, so that no two checkpoints of
//! one size differ.

mod journal;
mod key;
mod opening;
mod public;

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use attestation::{
    body::{Body, LogPosition},
    signed::{self, AttestationError},
    tlog::{self, Checkpoint, LogProof, RightEdge, SignedCheckpoint},
};
use ed25519_dalek::SigningKey;

use self::{journal::Journal, public::PublicFiles};

pub use self::opening::log_key;
pub(crate) use self::public::write_durably;

/// A log that is open for appending. Only one process at a time holds it.
pub(crate) struct TransparencyLog {
    origin: String,
    key: SigningKey,
    journal: Journal,
    public: PublicFiles,
    edge: RightEdge,
    next_entry: LogPosition,
    /// Signing time of the newest attestation, in milliseconds since 1970.
    last_signed: u64,
    sessions: HashSet<[u8; 32]>,
    /// Whether a write failed; the next start repairs the files.
    write_failed: bool,
}

/// An attestation with the proof that it is in the log.
pub(crate) struct LoggedAttestation {
    pub(crate) attestation: Vec<u8>,
    /// A [`LogProof`] of its entry, in a checkpoint that the attestation's own key cosigned.
    pub(crate) inclusion: Vec<u8>,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("failed to read or write the log {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("another process holds the log {0}")]
    Locked(PathBuf),
    #[error("{0} is a log of an earlier version: move it away to start a new log")]
    EarlierVersion(PathBuf),
    #[error("other users may read {0}: run `chmod 600` on it, and consider who has read it")]
    TooOpen(PathBuf),
    #[error("the log {0} was modified or is damaged: {1}")]
    Corrupt(PathBuf, String),
}

/// Why an attestation was not signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignError {
    #[error("the attestor's clock is behind its log")]
    Clock,
    #[error("this session was attested before")]
    Session,
    #[error("failed to encode the attestation")]
    Form(#[from] AttestationError),
    #[error("failed to write the log; the attestor has to be restarted")]
    File,
}

impl TransparencyLog {
    fn record_entry(&mut self, body: &Body, hash: [u8; 32]) {
        self.next_entry = LogPosition { index: body.log.index + 1, previous_hash: hash };
        self.last_signed = body.time.signed;
        self.sessions.insert(body.session);
    }

    pub(crate) fn contains(&self, session: &[u8; 32]) -> bool {
        self.sessions.contains(session)
    }

    /// Assigns the body its log entry, signs it, and returns once a checkpoint on the disk covers
    /// the entry. Blocks.
    pub(crate) fn sign(
        &mut self,
        body: Body,
        now: u64,
        key: &SigningKey,
    ) -> Result<LoggedAttestation, SignError> {
        let mut body = body;
        if self.write_failed {
            return Err(SignError::File);
        }
        if now < self.last_signed || now < body.time.closed {
            return Err(SignError::Clock);
        }
        if self.contains(&body.session) {
            return Err(SignError::Session);
        }
        body.log = self.next_entry.clone();
        body.time.signed = now;
        let attestation = signed::sign(&body, key)?;
        let (_, hash) = signed::decode_unverified(&attestation)?;
        let path = self.edge.next_path();
        let written =
            self.journal.append(&attestation).and_then(|()| self.publish(&hash, Some(key)));
        let checkpoint = written.map_err(|error| {
            tracing::error!(%error, "failed to write the log; nothing more is signed until a restart");
            self.write_failed = true;
            SignError::File
        })?;
        self.record_entry(&body, hash);
        let proof = LogProof { index: body.log.index, path, checkpoint };
        Ok(LoggedAttestation { attestation, inclusion: proof.write().into_bytes() })
    }

    /// Writes the files that the next entry changes, the checkpoint last.
    fn publish(
        &mut self,
        hash: &[u8; 32],
        cosigner: Option<&SigningKey>,
    ) -> io::Result<SignedCheckpoint> {
        let full = self.public.append(&mut self.edge, hash).map_err(io::Error::other)?;
        self.public.write(&self.edge, &full)?;
        let checkpoint = self.publish_checkpoint(cosigner)?;
        self.public.remove_partial(&full);
        Ok(checkpoint)
    }

    fn publish_checkpoint(&self, cosigner: Option<&SigningKey>) -> io::Result<SignedCheckpoint> {
        let (size, root) = (self.edge.size(), self.edge.root());
        let checkpoint = Checkpoint { origin: self.origin.clone(), size, root };
        let keys: Vec<_> = [&self.key].into_iter().chain(cosigner).collect();
        let signed = SignedCheckpoint::sign(&checkpoint, &keys).map_err(io::Error::other)?;
        self.public.write_checkpoint(&signed)?;
        Ok(signed)
    }
}

/// Returns the default origin of a log: the attestor's name with the characters replaced that a key
/// name must not contain.
#[must_use]
pub fn default_origin(name: &str) -> String {
    let allowed =
        |character: char| if tlog::is_key_name(&character.to_string()) { character } else { '-' };
    let origin: String = name.trim().chars().take(100).map(allowed).collect();
    if origin.is_empty() { "attestor".into() } else { origin }
}

/// Formats an error about a file for the end of a sentence.
fn file_error(path: &Path, error: &(impl std::fmt::Display + ?Sized)) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
pub(crate) mod tests;
