//! The keys that attestations are signed with: a folder of files that nobody else may read, each
//! with the time that it may sign in, so that one follows the other.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use attestation::signed::{hex, unhex};
use ed25519_dalek::SigningKey;
use serde::{Deserialize, Serialize};

use crate::examine::random;

const DAY: u64 = 24 * 60 * 60 * 1000;
const LONGEST: u64 = 4096;
const MOST: usize = 100;

/// A key with when it may sign, in milliseconds since 1970.
pub(crate) struct Key {
    pub(crate) signing: SigningKey,
    pub(crate) valid_from: u64,
    pub(crate) valid_to: u64,
}

/// As a file has it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    /// 32 bytes in lower-case hexadecimal.
    secret: String,
    valid_from: u64,
    valid_to: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("{0} cannot be read or written: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("{0} may be read by others: `chmod 600` it, and think about who has read it")]
    Open(PathBuf),
    #[error("{0} is no key: {1}")]
    Form(PathBuf, String),
    #[error("no key in {0} is valid now: `avouch-attestor new-key` makes one")]
    None(PathBuf),
}

/// Makes a key that may sign from now on.
///
/// # Errors
/// The file is there already, or cannot be written.
pub fn new_key(folder: &Path, now: u64, days: u64) -> Result<PathBuf, KeyError> {
    let secret: [u8; 32] = random();
    let file = File { secret: hex(&secret), valid_from: now, valid_to: now + days * DAY };
    let path = folder.join(format!("{now}.json"));
    let failed = |error| KeyError::File(path.clone(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    let text = serde_json::to_string(&file).unwrap_or_default();
    let mut out =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(failed)?;
    Ok(path)
}

/// All keys of a folder, the newest last.
///
/// # Errors
/// One of them cannot be used, or is open to others.
pub(crate) fn read_keys(folder: &Path) -> Result<Vec<Key>, KeyError> {
    let failed = |error| KeyError::File(folder.to_owned(), error);
    let mut keys = vec![];
    for entry in fs::read_dir(folder).map_err(failed)?.take(MOST) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            keys.push(read_key(&path)?);
        }
    }
    keys.sort_by_key(|key| key.valid_from);
    Ok(keys)
}

fn read_key(path: &Path) -> Result<Key, KeyError> {
    let failed = |error| KeyError::File(path.to_owned(), error);
    let meta = fs::metadata(path).map_err(failed)?;
    if meta.mode() & 0o077 != 0 {
        return Err(KeyError::Open(path.to_owned()));
    }
    let form = |why: &str| KeyError::Form(path.to_owned(), why.to_owned());
    if meta.len() > LONGEST {
        return Err(form("it is too long"));
    }
    let file: File = serde_json::from_slice(&fs::read(path).map_err(failed)?)
        .map_err(|error| form(&error.to_string()))?;
    let secret = unhex(&file.secret).and_then(|secret| secret.try_into().ok());
    let secret = secret.ok_or_else(|| form("its secret is not 64 hexadecimal digits"))?;
    let (valid_from, valid_to) = (file.valid_from, file.valid_to);
    Ok(Key { signing: SigningKey::from_bytes(&secret), valid_from, valid_to })
}

/// The newest key that may sign now.
pub(crate) fn current(keys: &[Key], now: u64) -> Option<&Key> {
    keys.iter().rev().find(|key| (key.valid_from..key.valid_to).contains(&now))
}

/// What others are told of the keys.
pub(crate) fn issuers(name: &str, keys: &[Key]) -> Vec<serde_json::Value> {
    let issuer = |key: &Key| {
        serde_json::json!({
            "name": name,
            "publicKey": hex(&key.signing.verifying_key().to_bytes()),
            "validFrom": key.valid_from,
            "validTo": key.valid_to,
        })
    };
    keys.iter().map(issuer).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn one_key_follows_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let first = new_key(folder.path(), 1000, 2).unwrap();
        new_key(folder.path(), 1000 + DAY, 1).unwrap();
        let keys = read_keys(folder.path()).unwrap();
        let from = |now| current(&keys, now).map(|key| key.valid_from);
        assert_eq!(from(999), None);
        assert_eq!(from(1000), Some(1000));
        assert_eq!(from(1000 + DAY), Some(1000 + DAY), "the newest");
        assert_eq!(from(1000 + 2 * DAY), None, "both have ended");
        assert_eq!(issuers("us", &keys).len(), 2);
        assert!(matches!(new_key(folder.path(), 1000, 1), Err(KeyError::File(..))));
        fs::set_permissions(&first, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read_keys(folder.path()), Err(KeyError::Open(path)) if path == first));
        fs::set_permissions(&first, Permissions::from_mode(0o600)).unwrap();
        fs::write(&first, "{\"secret\":\"00\",\"validFrom\":1,\"validTo\":2}").unwrap();
        assert!(matches!(read_keys(folder.path()), Err(KeyError::Form(..))));
    }
}
