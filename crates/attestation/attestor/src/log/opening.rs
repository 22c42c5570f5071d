//! Opens a log: replays all of it and completes what a crash interrupted.

use std::{
    cmp::Ordering,
    collections::HashSet,
    path::{Path, PathBuf},
};

use attestation::{
    body::LogPosition,
    signed::{self, AttestationError, Issuer},
    tlog::{Checkpoint, NoteKey, RightEdge, SignedCheckpoint},
};
use ed25519_dalek::SigningKey;

use super::{
    LogError, TransparencyLog,
    journal::{Journal, JournalEntry},
    key,
    public::{self, PublicFiles},
};

const PUBLIC: &str = "public";
const PRIVATE: &str = "private";

/// Returns the verifier key of a log, which monitors and verifiers need. Creates the log's key if
/// there is no log yet.
///
/// # Errors
/// The key cannot be read or created.
pub fn log_key(folder: &Path, origin: &str) -> Result<NoteKey, LogError> {
    let private = create_folders(folder)?;
    let public = PublicFiles::new(folder.join(PUBLIC));
    let key = key::read_or_create(&private, public.is_empty())?;
    note_key(folder, origin, &key)
}

fn note_key(folder: &Path, origin: &str, key: &SigningKey) -> Result<NoteKey, LogError> {
    let known = NoteKey::new(origin, key.verifying_key().as_bytes());
    known.map_err(|error| LogError::Corrupt(folder.to_owned(), format!("its origin: {error}")))
}

/// Creates the folders of a log and returns the private one, which only its owner may enter.
fn create_folders(folder: &Path) -> Result<PathBuf, LogError> {
    if folder.is_file() {
        return Err(LogError::EarlierVersion(folder.to_owned()));
    }
    let private = folder.join(PRIVATE);
    let made = public::create_folder(folder, 0o755)
        .and_then(|()| public::create_folder(&private, 0o700))
        .and_then(|()| public::create_folder(&folder.join(PUBLIC), 0o755));
    made.map_err(|error| LogError::File(folder.to_owned(), error))?;
    Ok(private)
}

impl TransparencyLog {
    /// Opens or creates a log and checks all of it: the journal's attestations and their order,
    /// their signatures if the key is among `issuers`, every entry and tile, and the signed
    /// checkpoint. Completes what a crash interrupted, with `cosigner` for the checkpoint.
    ///
    /// # Errors
    /// Returns the first difference from what was written.
    pub(crate) fn open(
        folder: &Path,
        origin: &str,
        issuers: &[Issuer],
        cosigner: Option<&SigningKey>,
    ) -> Result<Self, LogError> {
        // The log contains attestations that a key signed before its revocation: their signatures
        // are verified too.
        let unrevoked = |issuer: &Issuer| Issuer { revoked_at: None, ..issuer.clone() };
        let issuers: Vec<_> = issuers.iter().map(unrevoked).collect();
        let private = create_folders(folder)?;
        let (journal, records) = Journal::open(&private)?;
        let public = PublicFiles::new(folder.join(PUBLIC));
        let key = key::read_or_create(&private, public.is_empty())?;
        let known = note_key(folder, origin, &key)?;
        let mut log = Self {
            origin: origin.to_owned(),
            key,
            journal,
            public,
            edge: RightEdge::default(),
            next_entry: LogPosition { index: 0, previous_hash: [0; 32] },
            last_signed: 0,
            sessions: HashSet::new(),
            write_failed: false,
        };
        let broken = |why: String| LogError::Corrupt(folder.to_owned(), why);
        let mut records = records.peekable();
        let published = match log.public.checkpoint().map_err(&broken)? {
            Some(bytes) => {
                let signed = SignedCheckpoint::parse(&bytes);
                let held = signed.and_then(|signed| signed.verify(&known).cloned());
                held.map_err(|error| {
                    broken(format!("its checkpoint: {error}; its name is log_origin"))
                })?
            }
            None if records.peek().is_none() && log.public.is_empty() => {
                log.publish_empty(cosigner)?
            }
            None => return Err(broken("there is no checkpoint".into())),
        };
        if published.size == 0 {
            log.check_published(&published, true).map_err(&broken)?;
        }
        while let Some(record) = records.next() {
            let record = record.map_err(&broken)?;
            log.replay(record, &issuers, &published, cosigner).map_err(&broken)?;
            if log.edge.size() == published.size {
                let more = records.peek().is_some();
                log.check_published(&published, more).map_err(&broken)?;
            }
        }
        if log.edge.size() < published.size {
            let (entries, size) = (log.edge.size(), published.size);
            return Err(broken(format!("it has {entries} attestations of {size}")));
        }
        Ok(log)
    }

    /// Publishes the checkpoint of the empty log.
    fn publish_empty(&mut self, cosigner: Option<&SigningKey>) -> Result<Checkpoint, LogError> {
        let signed = self.publish_checkpoint(cosigner);
        let signed = signed.map_err(|error| LogError::File(self.public.folder(), error))?;
        Ok(signed.unverified().clone())
    }

    /// Adds the journal's next attestation to the tree, and compares the public files with it.
    fn replay(
        &mut self,
        record: JournalEntry,
        issuers: &[Issuer],
        published: &Checkpoint,
        cosigner: Option<&SigningKey>,
    ) -> Result<(), String> {
        let JournalEntry { attestation, body, hash } = record;
        let index = self.edge.size();
        if body.log != self.next_entry {
            return Err(format!(
                "attestation {index} of the journal has the wrong index or predecessor"
            ));
        }
        match signed::verify(&attestation, issuers) {
            Ok(_) => (),
            // The key's file was removed, or the key has expired since.
            Err(AttestationError::Issuer | AttestationError::NotValid) => (),
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
                made.map_err(|error| format!("failed to complete it: {error}"))?;
            }
            Ordering::Greater => {
                let size = published.size;
                return Err(format!("its checkpoint has {size} entries, the journal has more"));
            }
        }
        self.record_entry(&body, hash);
        Ok(())
    }

    /// Checks that the published files are those of the journal's attestations up to here. If the
    /// journal has one more, a crash may have left files that its entry changes.
    fn check_published(&self, published: &Checkpoint, more: bool) -> Result<(), String> {
        if self.edge.root() != published.root {
            return Err("its checkpoint does not match the journal's attestations".into());
        }
        self.public.compare_partial(&self.edge, usize::from(more))
    }
}
