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
mod public;

use std::{
    cmp::Ordering,
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use attestation::{
    body::{Body, LogPlace},
    signed::{self, BadAttestation, Issuer},
    tlog::{self, Checkpoint, LogProof, NoteKey, RightEdge, SignedCheckpoint},
};
use ed25519_dalek::SigningKey;

use self::{
    journal::{Journal, Record},
    public::Public,
};

pub(crate) use self::public::write_durably;

const PUBLIC: &str = "public";
const PRIVATE: &str = "private";

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

/// The verifier key of a log, which monitors and verifiers are given; makes the log's key where
/// there is no log yet.
///
/// # Errors
/// The key cannot be read or made.
pub fn log_key(folder: &Path, origin: &str) -> Result<NoteKey, LogError> {
    let private = prepared(folder)?;
    let public = Public::new(folder.join(PUBLIC));
    let key = key::read_or_make(&private, public.is_empty())?;
    note_key(folder, origin, &key)
}

fn note_key(folder: &Path, origin: &str, key: &SigningKey) -> Result<NoteKey, LogError> {
    let known = NoteKey::new(origin, key.verifying_key().as_bytes());
    known.map_err(|error| LogError::Broken(folder.to_owned(), format!("its origin: {error}")))
}

/// The private folder, which nobody else may enter.
fn prepared(folder: &Path) -> Result<PathBuf, LogError> {
    if folder.is_file() {
        return Err(LogError::Earlier(folder.to_owned()));
    }
    let private = folder.join(PRIVATE);
    let made = public::make_folder(folder, 0o755)
        .and_then(|()| public::make_folder(&private, 0o700))
        .and_then(|()| public::make_folder(&folder.join(PUBLIC), 0o755));
    made.map_err(|error| LogError::File(folder.to_owned(), error))?;
    Ok(private)
}

impl Log {
    /// Opens a log, or makes one, and goes through all of it: the journal's attestations and their
    /// order, their signatures where the key is among `issuers`, every entry and tile, and the
    /// signed checkpoint. What a crash left undone is done, with `cosigner` for the checkpoint.
    ///
    /// # Errors
    /// Everything that is not as it was written.
    pub(crate) fn open(
        folder: &Path,
        origin: &str,
        issuers: &[Issuer],
        cosigner: Option<&SigningKey>,
    ) -> Result<Self, LogError> {
        // What a key signed before it was revoked is in the log: these signatures are verified too.
        let unrevoked = |issuer: &Issuer| Issuer { revoked_at: None, ..issuer.clone() };
        let issuers: Vec<_> = issuers.iter().map(unrevoked).collect();
        let private = prepared(folder)?;
        let (journal, records) = Journal::open(&private)?;
        let public = Public::new(folder.join(PUBLIC));
        let key = key::read_or_make(&private, public.is_empty())?;
        let known = note_key(folder, origin, &key)?;
        let mut log = Self {
            origin: origin.to_owned(),
            key,
            journal,
            public,
            edge: RightEdge::default(),
            next: LogPlace { index: 0, before: [0; 32] },
            signed: 0,
            sessions: HashSet::new(),
            torn: false,
        };
        let broken = |why: String| LogError::Broken(folder.to_owned(), why);
        let mut records = records.peekable();
        let published = match log.public.checkpoint().map_err(&broken)? {
            Some(bytes) => {
                let signed = SignedCheckpoint::parse(&bytes);
                let held = signed.and_then(|signed| signed.verify(&known).cloned());
                held.map_err(|error| broken(format!("its checkpoint: {error}")))?
            }
            None if records.peek().is_none() && log.public.is_empty() => log.begin(cosigner)?,
            None => return Err(broken("there is no checkpoint".into())),
        };
        if published.size == 0 {
            log.held_against(&published, true).map_err(&broken)?;
        }
        while let Some(record) = records.next() {
            let record = record.map_err(&broken)?;
            log.take_over(record, &issuers, &published, cosigner).map_err(&broken)?;
            if log.edge.size() == published.size {
                let more = records.peek().is_some();
                log.held_against(&published, more).map_err(&broken)?;
            }
        }
        if log.edge.size() < published.size {
            let (entries, size) = (log.edge.size(), published.size);
            return Err(broken(format!("it has {entries} attestations of {size}")));
        }
        Ok(log)
    }

    /// The checkpoint of the log without entries.
    fn begin(&mut self, cosigner: Option<&SigningKey>) -> Result<Checkpoint, LogError> {
        let signed = self.publish_checkpoint(cosigner);
        let signed = signed.map_err(|error| LogError::File(self.public.folder(), error))?;
        Ok(signed.unverified().clone())
    }

    /// Takes the journal's next attestation over, and holds the public files against it.
    fn take_over(
        &mut self,
        record: Record,
        issuers: &[Issuer],
        published: &Checkpoint,
        cosigner: Option<&SigningKey>,
    ) -> Result<(), String> {
        let Record { attestation, body, hash } = record;
        let index = self.edge.size();
        if body.log != self.next {
            return Err(format!("attestation {index} of the journal has another place"));
        }
        match signed::verify(&attestation, issuers) {
            Ok(_) => (),
            // Of a key whose file is gone, or that ended since.
            Err(BadAttestation::Issuer | BadAttestation::NotValid) => (),
            Err(error) => return Err(format!("attestation {index} of the journal: {error}")),
        }
        match index.cmp(&published.size) {
            Ordering::Less => {
                let full = self.public.append(&mut self.edge, &hash);
                self.public.compare_full(&full.map_err(|error| error.to_string())?)?;
            }
            Ordering::Equal => {
                tracing::warn!(
                    "attestation {index} was signed before a crash and is published now"
                );
                let made = self.publish(&hash, cosigner);
                made.map_err(|error| format!("it cannot be completed: {error}"))?;
            }
            Ordering::Greater => {
                let size = published.size;
                return Err(format!("its checkpoint has {size} entries, the journal more"));
            }
        }
        self.came(&body, hash);
        Ok(())
    }

    /// Whether the published files are those of the journal's attestations up to here. Where the
    /// journal has one more, a crash may have left files that its entry changes.
    fn held_against(&self, published: &Checkpoint, more: bool) -> Result<(), String> {
        if self.edge.root() != published.root {
            return Err("its checkpoint is not that of the journal's attestations".into());
        }
        self.public.compare_partial(&self.edge, usize::from(more))
    }

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
