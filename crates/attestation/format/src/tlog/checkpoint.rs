//! Signed tree heads of a log (C2SP tlog-checkpoint).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::SigningKey;

use super::{Hash, NoteKey, TlogError, is_key_name, note::SignedNote, tile::parse_number};

/// The statement of a log's operator: the log's name, its number of entries, and the root of the
/// tree over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log, which is also the name of its keys.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

impl Checkpoint {
    fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root))
    }

    /// Parses the text of a note. Refuses lines after the third, which these logs do not write.
    fn parse(text: &str) -> Result<Self, TlogError> {
        let lines: Vec<_> = text.splitn(4, '\n').collect();
        let [origin, size, root, ""] = lines.as_slice() else {
            return Err(TlogError::Malformed("a checkpoint has an origin, a size and a root"));
        };
        if !is_key_name(origin) {
            return Err(TlogError::Malformed("the origin has characters that it must not have"));
        }
        let root = STANDARD.decode(root).ok().and_then(|root| root.try_into().ok());
        let root = root.ok_or(TlogError::Malformed("the root is not 32 bytes in base64"))?;
        Ok(Self { origin: (*origin).to_owned(), size: parse_number(size)?, root })
    }
}

/// A published checkpoint. [`Self::verify`] checks its signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: SignedNote,
}

impl SignedCheckpoint {
    /// Signs a checkpoint with keys that have the log's name.
    ///
    /// # Errors
    /// Its origin cannot be a key's name, or there are too many keys.
    pub fn sign(checkpoint: &Checkpoint, keys: &[&SigningKey]) -> Result<Self, TlogError> {
        let note = SignedNote::sign(checkpoint.text(), &checkpoint.origin, keys)?;
        Self::parse(note.write().as_bytes())
    }

    /// Parses a checkpoint without verifying it.
    ///
    /// # Errors
    /// It is malformed, or longer than [`super::MAX_NOTE_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, TlogError> {
        let note = SignedNote::parse(bytes)?;
        Ok(Self { checkpoint: Checkpoint::parse(note.text())?, note })
    }

    /// Returns the bytes that it was parsed from.
    #[must_use]
    pub fn write(&self) -> String {
        self.note.write()
    }

    /// Returns the unverified checkpoint.
    #[must_use]
    pub const fn unverified(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Returns the checkpoint if this key signed it and it belongs to the log with the key's name.
    ///
    /// # Errors
    /// The key did not sign it, or signed it for another log.
    pub fn verify(&self, key: &NoteKey) -> Result<&Checkpoint, TlogError> {
        if self.checkpoint.origin != key.name() {
            return Err(TlogError::Origin(self.checkpoint.origin.clone()));
        }
        self.note.verify(key)?;
        Ok(&self.checkpoint)
    }
}

#[cfg(test)]
mod tests;
