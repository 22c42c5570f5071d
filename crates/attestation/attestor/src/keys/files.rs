//! The key files of a folder: read with limits, validated, and written atomically.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use attestation::signed::unhex;
use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use super::KeyError;
use crate::examine::random_bytes;

const MAX_FILE_BYTES: u64 = 4096;
/// Maximum number of key files in a folder. More are an error, because a file that is not read
/// could contain a revocation.
pub(super) const MAX_KEYS: usize = 100;
/// Maximum length of a revocation's reason.
pub(super) const MAX_REASON_BYTES: usize = 200;

/// A file of the folder and its content.
pub(super) struct StoredKey {
    pub(super) path: PathBuf,
    pub(super) content: KeyFile,
    pub(super) public_key: [u8; 32],
    /// `None` if the key was revoked.
    pub(super) signing: Option<SigningKey>,
}

/// The content of a key file. A revoked key has `publicKey` instead of `secret`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KeyFile {
    /// 32 bytes in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    /// 32 bytes in lower-case hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) public_key: Option<String>,
    pub(super) valid_from: u64,
    pub(super) valid_to: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoked_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_reason: Option<String>,
}

/// Reads all key files of a folder, the newest key last.
pub(super) fn read_folder(folder: &Path) -> Result<Vec<StoredKey>, KeyError> {
    let failed = |error| KeyError::File(folder.to_owned(), error);
    let mut keys = vec![];
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            if keys.len() == MAX_KEYS {
                return Err(KeyError::TooMany(folder.to_owned()));
            }
            keys.push(read_key(path)?);
        }
    }
    keys.sort_by(|one, other| {
        let order = |stored: &StoredKey| (stored.content.valid_from, stored.path.clone());
        order(one).cmp(&order(other))
    });
    Ok(keys)
}

fn read_key(path: PathBuf) -> Result<StoredKey, KeyError> {
    let failed = |error| KeyError::File(path.clone(), error);
    let file = File::open(&path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(KeyError::TooOpen(path));
    }
    let mut bytes = vec![];
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let form = |why: String| KeyError::Malformed(path.clone(), why);
    let (content, public_key, signing) = parse_key(&bytes).map_err(form)?;
    Ok(StoredKey { path, content, public_key, signing })
}

/// Parses a key file. Returns its content, its public key, and the signing key if it is not
/// revoked.
pub(super) fn parse_key(bytes: &[u8]) -> Result<(KeyFile, [u8; 32], Option<SigningKey>), String> {
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err("it is too long".into());
    }
    let content: KeyFile = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if content.valid_from >= content.valid_to {
        return Err("validTo is not after validFrom".into());
    }
    if content.revocation_reason.as_deref().is_some_and(|reason| !is_valid_reason(reason)) {
        return Err(KeyError::InvalidReason.to_string());
    }
    let digits = |text: &str, what: &str| -> Result<[u8; 32], String> {
        let bytes = unhex(text).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| format!("its {what} is not 64 hexadecimal digits"))
    };
    match (&content.secret, &content.public_key, content.revoked_at) {
        (Some(secret), None, revoked_at) => {
            let signing = SigningKey::from_bytes(&digits(secret, "secret")?);
            let public_key = signing.verifying_key().to_bytes();
            Ok((content, public_key, revoked_at.is_none().then_some(signing)))
        }
        (None, Some(public_key), Some(_)) => {
            let public_key = digits(public_key, "publicKey")?;
            Ok((content, public_key, None))
        }
        (Some(_), Some(_), _) => Err("it has both secret and publicKey".into()),
        (None, _, _) => Err("it has no secret and is not revoked".into()),
    }
}

pub(super) fn is_valid_reason(text: &str) -> bool {
    text.len() <= MAX_REASON_BYTES && !text.chars().any(char::is_control)
}

/// Writes a file that only its owner may read, next to `target`, and waits until it is on the disk.
pub(super) fn write_temporary(target: &Path, content: &KeyFile) -> io::Result<PathBuf> {
    let name = target.file_name().unwrap_or(OsStr::new("key"));
    let number = u64::from_ne_bytes(random_bytes());
    let path = target.with_file_name(format!("{}.{number}.tmp", name.display()));
    let text = serde_json::to_string(content).map_err(io::Error::other)?;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let written = out.write_all(text.as_bytes()).and_then(|()| out.sync_all());
    if let Err(error) = written {
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    Ok(path)
}

/// Waits until the folder's directory entries are on the disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
