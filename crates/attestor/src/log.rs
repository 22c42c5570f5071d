//! The attestor's transparency log: every attestation has an entry in it, in the order in which
//! they were signed, and is handed out only once a durable checkpoint covers its entry.
//!
//! The folder has two parts. `public` is the log itself, files that any web server can serve (C2SP
//! tlog-tiles): entries are hashes of attestations and tell nothing of them. `private` has the
//! journal with the attestations, and the key that checkpoints are signed with.
//!
//! **Invariant:** an entry is in the journal, on the disk, before anything is computed of it. What
//! a crash leaves undone is done at the next start from the journal, so that no two checkpoints of
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

/// The log, open for more. One process at a time has it.
pub(crate) struct Log {
    origin: String,
    key: SigningKey,
    journal: Journal,
    public: Public,
    edge: RightEdge,
    next: LogPlace,
    /// The newest attestation's, in milliseconds since 1970.
    signed: u64,
    sessions: HashSet<[u8; 32]>,
    /// Something was not written whole: the next start sets it right.
    torn: bool,
}

/// What is handed out.
pub(crate) struct Logged {
    pub(crate) attestation: Vec<u8>,
    /// A [`LogProof`] of its entry, in a checkpoint that the attestation's own key signed too.
    pub(crate) inclusion: Vec<u8>,
}

/// Why a log is not opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log {0} cannot be read or written: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("another process has the log {0}")]
    Taken(PathBuf),
    #[error("{0} is a log of an earlier version: move it away, a new log begins")]
    Earlier(PathBuf),
    #[error("{0} may be read by others: `chmod 600` it, and think about who has read it")]
    Open(PathBuf),
    #[error("the log {0} is not as it was written: {1}")]
    Broken(PathBuf, String),
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSigned {
    #[error("the attestor's clock is behind its log")]
    Clock,
    #[error("this session was attested before")]
    Session,
    #[error("the attestation cannot be written")]
    Form(#[from] BadAttestation),
    #[error("the log cannot be written; the attestor has to be started again")]
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

    /// Gives a body its place, signs it, and answers once its entry is in a checkpoint on the disk.
    /// Blocks.
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
            tracing::error!(%error, "the log cannot be written");
            self.torn = true;
            NotSigned::File
        })?;
        self.came(&body, hash);
        let proof = LogProof { index: body.log.index, path, checkpoint };
        Ok(Logged { attestation, inclusion: proof.write().into_bytes() })
    }

    /// Writes the files that the next entry changes, and the checkpoint last.
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

/// What a log is named where its operator did not name it: the attestor's name without what the
/// name of a key must not have.
#[must_use]
pub fn default_origin(name: &str) -> String {
    let fine =
        |character: char| if tlog::is_key_name(&character.to_string()) { character } else { '-' };
    let origin: String = name.trim().chars().take(100).map(fine).collect();
    if origin.is_empty() { "attestor".into() } else { origin }
}

/// Why a log's file cannot be used, as a sentence's end.
fn said(path: &Path, error: &(impl std::fmt::Display + ?Sized)) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
pub(crate) mod tests;
