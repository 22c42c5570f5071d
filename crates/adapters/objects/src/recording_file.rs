//! Recordings as objects, encrypted in chunks, so that a part can be read without the rest.
//!
//! An object is a magic number, the length of the recording (64 bits, little endian) and its chunks
//! of 64 KiB, each encrypted with its context: session, number, and length of the recording.
//! Recordings of earlier releases are plaintext and are read as they are.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::id::SessionId;
use object_store::ObjectStoreExt as _;
use ports::{
    StoreError,
    recording::{RecordingFile, SharedRecordings},
};

use super::{LinkSigner, ObjectVault, failed};
use ports::encryption::{Cipher, CipherError};

const MAGIC: &[u8; 8] = b"avfilm1\n";
const HEADER_BYTES: u64 = 16;
const CHUNK_BYTES: u64 = 64 * 1024;
/// The bytes that encryption adds to a chunk: the number of the key, nonce and tag.
const CHUNK_OVERHEAD_BYTES: u64 = 1 + 24 + 16;
/// The maximum size of a recording's part in memory for one reader.
const MAX_READ_BYTES: u64 = 16 * CHUNK_BYTES;

/// Recordings for holders of a link.
#[derive(Clone)]
pub struct RecordingFiles {
    pub vault: Arc<ObjectVault>,
    pub links: LinkSigner,
}

/// A stored recording.
struct OpenRecording {
    vault: Arc<ObjectVault>,
    session: SessionId,
    length: u64,
    encrypted: bool,
}

fn context(session: SessionId, chunk: u64, length: u64) -> String {
    format!("films/{session}/{chunk}/{length}")
}

/// Returns the size of a recording's object.
fn object_size(length: u64) -> u64 {
    HEADER_BYTES + length + length.div_ceil(CHUNK_BYTES) * CHUNK_OVERHEAD_BYTES
}

/// Returns the object of a recording.
pub(super) fn encrypt(
    cipher: &dyn Cipher,
    session: SessionId,
    mp4: &[u8],
) -> Result<Vec<u8>, CipherError> {
    let length = u64::try_from(mp4.len()).unwrap_or(u64::MAX);
    let size = usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX);
    let mut object = [MAGIC.as_slice(), &length.to_le_bytes()].concat();
    for (number, chunk) in (0..).zip(mp4.chunks(size)) {
        object.extend(cipher.encrypt(&context(session, number, length), chunk)?);
    }
    Ok(object)
}

#[async_trait]
impl SharedRecordings for RecordingFiles {
    async fn open(
        &self,
        name: &str,
        expires: i64,
        signature: &str,
    ) -> Result<Option<Box<dyn RecordingFile>>, StoreError> {
        let Some(session) = self.links.verify(name, expires, signature) else { return Ok(None) };
        let (vault, path) = (self.vault.clone(), self.vault.recording_path(session));
        let size = match vault.objects.head(&path).await {
            Ok(meta) => meta.size,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed("look for a recording")(error)),
        };
        let head = vault.objects.get_range(&path, 0..HEADER_BYTES.min(size)).await;
        let head = head.map_err(failed("read a recording"))?;
        let encrypted = head.strip_prefix(MAGIC).and_then(|length| length.try_into().ok());
        let length = encrypted.map_or(size, u64::from_le_bytes);
        if encrypted.is_some() && (length > size || object_size(length) != size) {
            return Err(StoreError::new("read a recording", "its length is wrong"));
        }
        Ok(Some(Box::new(OpenRecording { vault, session, length, encrypted: encrypted.is_some() })))
    }
}

impl OpenRecording {
    async fn read_exactly(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.vault.recording_path(self.session);
        if !self.encrypted {
            let read = self.vault.objects.get_range(&path, range).await;
            return read.map_err(failed("read a recording"));
        }
        let (first, last) = (range.start / CHUNK_BYTES, range.end.div_ceil(CHUNK_BYTES));
        let size = object_size(self.length);
        let at =
            |chunk: u64| (HEADER_BYTES + chunk * (CHUNK_BYTES + CHUNK_OVERHEAD_BYTES)).min(size);
        let read = self.vault.objects.get_range(&path, at(first)..at(last)).await;
        let mut encrypted = read.map_err(failed("read a recording"))?;
        let mut plain = BytesMut::new();
        for chunk in first..last {
            let size = usize::try_from(at(chunk + 1) - at(chunk)).unwrap_or(usize::MAX);
            let part = encrypted.split_to(size.min(encrypted.len()));
            let plaintext =
                self.vault.cipher.decrypt(&context(self.session, chunk, self.length), &part);
            plain.extend_from_slice(&plaintext.map_err(failed("decrypt a recording"))?);
        }
        let skipped = usize::try_from(range.start - first * CHUNK_BYTES).unwrap_or(usize::MAX);
        let requested = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let plain = plain.freeze();
        let end = skipped.saturating_add(requested).min(plain.len());
        Ok(plain.slice(skipped.min(end)..end))
    }
}

#[async_trait]
impl RecordingFile for OpenRecording {
    fn length(&self) -> u64 {
        self.length
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        // Ends at a chunk boundary, so that no chunk is read twice.
        let end = ((range.start / CHUNK_BYTES) * CHUNK_BYTES + MAX_READ_BYTES).min(range.end);
        Ok(self.read_exactly(range.start..end).await?.into())
    }
}
