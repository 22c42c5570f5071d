//! Offline proofs that an entry is in a log (C2SP tlog-proof).

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Checkpoint, Hash, MAX_PATH_HASHES, MAX_PROOF_BYTES, NoteKey, SignedCheckpoint, TlogError,
    entry, tile::parse_number, verify_inclusion,
};
use crate::signed::{Attestation, unhex};

const HEADER: &str = "c2sp.org/tlog-proof@v1\n";

/// An entry's index, its inclusion proof, and the checkpoint of the proof's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProof {
    pub index: u64,
    /// Starts with the hash of the leaf's sibling.
    pub path: Vec<Hash>,
    pub checkpoint: SignedCheckpoint,
}

impl LogProof {
    /// Parses a proof without verifying it. Refuses extra data, which these logs do not write.
    ///
    /// # Errors
    /// It is malformed, or longer than [`MAX_PROOF_BYTES`].
    pub fn read(bytes: &[u8]) -> Result<Self, TlogError> {
        if bytes.len() > MAX_PROOF_BYTES {
            return Err(TlogError::TooLong(MAX_PROOF_BYTES));
        }
        let text =
            str::from_utf8(bytes).map_err(|_| TlogError::Malformed("the proof is not in UTF-8"))?;
        let text = text.strip_prefix(HEADER);
        let text = text.ok_or(TlogError::Malformed("the proof does not start as a tlog-proof"))?;
        let text = text.strip_prefix("index ");
        let text = text.ok_or(TlogError::Malformed("the proof has no index"))?;
        let parts = text.split_once("\n\n");
        let (head, checkpoint) =
            parts.ok_or(TlogError::Malformed("the proof has no checkpoint"))?;
        let mut lines = head.split('\n');
        let index = parse_number(lines.next().unwrap_or_default())?;
        let hash = |line: &str| STANDARD.decode(line).ok()?.try_into().ok();
        let path: Option<Vec<Hash>> = lines.take(MAX_PATH_HASHES + 1).map(hash).collect();
        let path = path.filter(|path| path.len() <= MAX_PATH_HASHES);
        let path = path.ok_or(TlogError::Malformed("the path is not a list of up to 64 hashes"))?;
        Ok(Self { index, path, checkpoint: SignedCheckpoint::parse(checkpoint.as_bytes())? })
    }

    /// Returns the stored form; its files are named `.tlog-proof`.
    #[must_use]
    pub fn write(&self) -> String {
        let path: String = self.path.iter().map(|hash| STANDARD.encode(hash) + "\n").collect();
        format!("{HEADER}index {}\n{path}\n{}", self.index, self.checkpoint.write())
    }

    /// Verifies that the log of this key has this entry. Returns the checkpoint that covers it.
    ///
    /// # Errors
    /// The key did not sign the checkpoint, or the entry is not in the tree.
    pub fn verify(&self, entry: &[u8], key: &NoteKey) -> Result<&Checkpoint, TlogError> {
        let checkpoint = self.checkpoint.verify(key)?;
        let Checkpoint { size, root, .. } = checkpoint;
        verify_inclusion(entry, self.index, *size, &self.path, root)?;
        Ok(checkpoint)
    }

    /// Verifies that the log of this key has an attestation, at the index that the attestation
    /// states.
    ///
    /// # Errors
    /// As for [`Self::verify`], or the attestation states another index.
    pub fn verify_attestation(
        &self,
        attestation: &Attestation,
        key: &NoteKey,
    ) -> Result<&Checkpoint, TlogError> {
        if attestation.body.log.index != self.index {
            return Err(TlogError::Index);
        }
        let hash = unhex(&attestation.proof_hash).and_then(|hash| hash.try_into().ok());
        self.verify(&entry(&hash.ok_or(TlogError::NotIncluded)?), key)
    }

    /// Returns an attestor's key with the name of this log. Attestors cosign the checkpoints of
    /// proofs with the attestation's key, so that a verifier that trusts this key needs no other.
    ///
    /// # Errors
    /// It is not a valid key.
    pub fn key_of(&self, public_key: &[u8; 32]) -> Result<NoteKey, TlogError> {
        NoteKey::new(&self.checkpoint.unverified().origin, public_key)
    }
}
