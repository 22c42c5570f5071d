//! Signed heads of a log (C2SP tlog-checkpoint).

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::SigningKey;

use super::{BadLog, Hash, NoteKey, is_key_name, note::SignedNote, tile::number};

/// What a log's operator states: the log's name, how many entries it has, and the root of the tree
/// over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The name of the log; also that of its keys.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

impl Checkpoint {
    fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root))
    }

    /// Reads the text of a note. Lines after the third are refused: these logs write none.
    fn parse(text: &str) -> Result<Self, BadLog> {
        let lines: Vec<_> = text.splitn(4, '\n').collect();
        let [origin, size, root, ""] = lines.as_slice() else {
            return Err(BadLog::Form("a checkpoint has an origin, a size and a root"));
        };
        if !is_key_name(origin) {
            return Err(BadLog::Form("the origin has characters that it must not have"));
        }
        let root = STANDARD.decode(root).ok().and_then(|root| root.try_into().ok());
        let root = root.ok_or(BadLog::Form("the root is not 32 bytes in base64"))?;
        Ok(Self { origin: (*origin).to_owned(), size: number(size)?, root })
    }
}

/// A checkpoint as it is published. Who signed it is asked with [`Self::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: SignedNote,
}

impl SignedCheckpoint {
    /// Signs a checkpoint with keys that have the log's name.
    ///
    /// # Errors
    /// Where its origin cannot be a key's name, or there are too many keys.
    pub fn sign(checkpoint: &Checkpoint, keys: &[&SigningKey]) -> Result<Self, BadLog> {
        let note = SignedNote::sign(checkpoint.text(), &checkpoint.origin, keys)?;
        Self::parse(note.write().as_bytes())
    }

    /// Reads one, without believing it.
    ///
    /// # Errors
    /// Where it is none, or longer than [`super::MAX_NOTE_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BadLog> {
        let note = SignedNote::parse(bytes)?;
        Ok(Self { checkpoint: Checkpoint::parse(note.text())?, note })
    }

    /// The bytes that it was read from.
    #[must_use]
    pub fn write(&self) -> String {
        self.note.write()
    }

    /// What it says, whoever signed it.
    #[must_use]
    pub const fn unverified(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// What it says, where this key signed it and it is of the log of the key's name.
    ///
    /// # Errors
    /// Where the key did not sign it, or for another log.
    pub fn verify(&self, key: &NoteKey) -> Result<&Checkpoint, BadLog> {
        if self.checkpoint.origin != key.name() {
            return Err(BadLog::Origin(self.checkpoint.origin.clone()));
        }
        self.note.verify(key)?;
        Ok(&self.checkpoint)
    }
}

#[cfg(test)]
mod tests;
