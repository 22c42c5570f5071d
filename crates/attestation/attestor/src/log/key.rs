//! The key that signs checkpoints. Unlike the keys of attestations it never changes, because it
//! identifies the log.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use attestation::signed::{hex, unhex};
use ed25519_dalek::SigningKey;

use super::LogError;
use crate::examine::random_bytes;

const FILE_NAME: &str = "key";
/// Length of the file: 64 hexadecimal digits and a newline.
const FILE_BYTES: u64 = 65;

/// Reads the log's key, or creates one if there is none and no checkpoint is signed by an older
/// one.
pub(super) fn read_or_create(private: &Path, is_new: bool) -> Result<SigningKey, LogError> {
    let path = private.join(FILE_NAME);
    let failed = |error| LogError::File(path.clone(), error);
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_new => {
            return create(private).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    if meta.mode() & 0o077 != 0 {
        return Err(LogError::TooOpen(path));
    }
    let broken = || LogError::Corrupt(path.clone(), "its key is not 64 hexadecimal digits".into());
    if meta.len() > FILE_BYTES {
        return Err(broken());
    }
    let text = fs::read_to_string(&path).map_err(failed)?;
    let secret = unhex(text.trim_end()).and_then(|secret| secret.try_into().ok());
    Ok(SigningKey::from_bytes(&secret.ok_or_else(broken)?))
}

/// Writes the key to a temporary file first: a crash leaves no key rather than a part of one.
fn create(private: &Path) -> io::Result<SigningKey> {
    let secret: [u8; 32] = random_bytes();
    let temporary = private.join(".key.new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(format!("{}\n", hex(&secret)).as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, private.join(FILE_NAME))?;
    File::open(private)?.sync_all()?;
    Ok(SigningKey::from_bytes(&secret))
}
