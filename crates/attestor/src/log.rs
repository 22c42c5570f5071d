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
    body::{Body, LogPlace},
    signed::{self, BadAttestation},
    tlog::{self, Checkpoint, LogProof, RightEdge, SignedCheckpoint},
};
use ed25519_dalek::SigningKey;

use self::{journal::Journal, public::Public};

pub use self::opening::log_key;
pub(crate) use self::public::write_durably;

/// A log that is open for appending. Only one process at a time holds it.
pub(crate) struct Log {
    origin: String,
    key: SigningKey,
    journal: Journal,
    public: Public,
    edge: RightEdge,
    next: LogPlace,
    /// Signing time of the newest attestation, in milliseconds since 1970.
    signed: u64,
    sessions: HashSet<[u8; 32]>,
    /// Whether a write failed; the next start repairs the files.
    torn: bool,
}

/// An attestation with the proof that it is in the log.
pub(crate) struct Logged {
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
    Taken(PathBuf),
    #[error("{0} is a log of an earlier version: move it away to start a new log")]
    Earlier(PathBuf),
    #[error("other users may read {0}: run `chmod 600` on it, and consider who has read it")]
    Open(PathBuf),
    #[error("the log {0} was modified or is damaged: {1}")]
    Broken(PathBuf, String),
}

/// Why an attestation was not signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSigned {
    #[error("the attestor's clock is behind its log")]
    Clock,
    #[error("this session was attested before")]
    Session,
    #[error("failed to encode the attestation")]
    Form(#[from] BadAttestation),
    #[error("failed to write the log; the attestor has to be restarted")]
    File,
}

impl Log {
    fn came(&mut self, body: &Body, hash: [u8; 32]) {
        self.next = LogPlace { index: body.log.index + 1, before: hash };
        self.signed = body.time.signed;
        self.sessions.insert(body.session);
    }

    pub(crate) fn has(&self, session: &[u8; 32]) -> bool {
        self.sessions.contains(session)
    }

    /// Assigns the body its log entry, signs it, and returns once a checkpoint on the disk covers
    /// the entry. Blocks.
    pub(crate) fn sign(
        &mut self,
        body: Body,
        now: u64,
        key: &SigningKey,
    ) -> Result<Logged, NotSigned> {
        let mut body = body;
        if self.torn {
            return Err(NotSigned::File);
        }
        if now < self.signed || now < body.time.closed {
            return Err(NotSigned::Clock);
        }
        if self.has(&body.session) {
            return Err(NotSigned::Session);
        }
        body.log = self.next.clone();
        body.time.signed = now;
        let attestation = signed::sign(&body, key)?;
        let (_, hash) = signed::unverified(&attestation)?;
        let path = self.edge.next_path();
        let written =
            self.journal.append(&attestation).and_then(|()| self.publish(&hash, Some(key)));
        let checkpoint = written.map_err(|error| {
            tracing::error!(%error, "failed to write the log; nothing more is signed until a restart");
            self.torn = true;
            NotSigned::File
        })?;
        self.came(&body, hash);
        let proof = LogProof { index: body.log.index, path, checkpoint };
        Ok(Logged { attestation, inclusion: proof.write().into_bytes() })
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
        self.public.clean(&full);
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
    let fine =
        |character: char| if tlog::is_key_name(&character.to_string()) { character } else { '-' };
    let origin: String = name.trim().chars().take(100).map(fine).collect();
    if origin.is_empty() { "attestor".into() } else { origin }
}

/// Formats an error about a file for the end of a sentence.
fn said(path: &Path, error: &(impl std::fmt::Display + ?Sized)) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
pub(crate) mod tests;
