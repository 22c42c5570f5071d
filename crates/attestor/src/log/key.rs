//! The key that checkpoints are signed with. Unlike those of attestations it never changes: it is
//! what a log is known by.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use attestation::signed::{hex, unhex};
use ed25519_dalek::SigningKey;

use super::LogError;
use crate::examine::random;

const FILE: &str = "key";
/// Bytes of the file: 64 hexadecimal digits and a newline.
const LENGTH: u64 = 65;

/// The log's key; a new one where there is none, and no checkpoint that would need the old one.
pub(super) fn read_or_make(private: &Path, is_new: bool) -> Result<SigningKey, LogError> {
    let path = private.join(FILE);
    let failed = |error| LogError::File(path.clone(), error);
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_new => {
            return make(private).map_err(failed);
        }
        Err(error) => return Err(failed(error)),
    };
    if meta.mode() & 0o077 != 0 {
        return Err(LogError::Open(path));
    }
    let broken = || LogError::Broken(path.clone(), "its key is not 64 hexadecimal digits".into());
    if meta.len() > LENGTH {
        return Err(broken());
    }
    let text = fs::read_to_string(&path).map_err(failed)?;
    let secret = unhex(text.trim_end()).and_then(|secret| secret.try_into().ok());
    Ok(SigningKey::from_bytes(&secret.ok_or_else(broken)?))
}

/// Writes the key beside its place first: a crash leaves none rather than half of one.
fn make(private: &Path) -> io::Result<SigningKey> {
    let secret: [u8; 32] = random();
    let beside = private.join(".key.new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(format!("{}\n", hex(&secret)).as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, private.join(FILE))?;
    File::open(private)?.sync_all()?;
    Ok(SigningKey::from_bytes(&secret))
}
