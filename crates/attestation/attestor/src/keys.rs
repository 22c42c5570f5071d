//! The keys that sign attestations: a folder of files that only their owner may read, each with its
//! validity period, so that keys can be rotated. A revoked key stays listed without its secret, so
//! that its revocation is published.

mod files;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use attestation::signed::{hex, key_id};
use ed25519_dalek::SigningKey;
use serde::Serialize;

use self::files::{
    KeyFile, MAX_KEYS, MAX_REASON_BYTES, StoredKey, is_valid_reason, read_folder, sync_folder,
    write_temporary,
};
use crate::examine::random_bytes;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// A key that is not revoked, with its validity period in milliseconds since 1970.
pub(crate) struct NotaryKey {
    pub(crate) signing: SigningKey,
    pub(crate) valid_from: u64,
    pub(crate) valid_to: u64,
}

/// A key of the folder with its state. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyEntry {
    /// [`key_id`] in hexadecimal, by which attestations name the key.
    pub key_id: String,
    /// 32 bytes in hexadecimal.
    pub public_key: String,
    pub state: KeyState,
    pub valid_from: u64,
    pub valid_to: u64,
    pub revoked_at: Option<u64>,
    pub revocation_reason: Option<String>,
    pub file: PathBuf,
}

/// The state of a key at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyState {
    /// It signs attestations.
    Current,
    /// It is valid, but a newer key signs.
    Valid,
    NotYetValid,
    Ended,
    Revoked,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("failed to read or write {0}: {1}")]
    File(PathBuf, #[source] io::Error),
    #[error("other users may read {0}: run `chmod 600` on it, and consider who has read it")]
    TooOpen(PathBuf),
    #[error("{0} is not a valid key: {1}")]
    Malformed(PathBuf, String),
    #[error("no key in {0} is valid now: `avouch-attestor new-key` makes one")]
    NoValidKey(PathBuf),
    #[error("{0} has more than {MAX_KEYS} keys: move some expired keys elsewhere")]
    TooMany(PathBuf),
    #[error("{0} has no such key: `avouch-attestor list-keys` prints their ids")]
    UnknownKey(PathBuf),
    #[error("a revocation cannot be in the future: it takes effect when it is published")]
    RevocationInFuture,
    #[error("the reason is longer than {MAX_REASON_BYTES} bytes, or has control characters")]
    InvalidReason,
}

/// Creates a key that is valid from now on, for this number of days.
///
/// # Errors
/// The file exists already, or it cannot be written.
pub fn new_key(folder: &Path, now: u64, days: u64) -> Result<PathBuf, KeyError> {
    let secret: [u8; 32] = random_bytes();
    let valid_to = now.saturating_add(days.saturating_mul(DAY_MILLIS));
    let content = KeyFile {
        secret: Some(hex(&secret)),
        public_key: None,
        valid_from: now,
        valid_to,
        revoked_at: None,
        revocation_reason: None,
    };
    let path = folder.join(format!("{now}.json"));
    let failed = |error| KeyError::File(path.clone(), error);
    fs::create_dir_all(folder).map_err(failed)?;
    let temporary = write_temporary(&path, &content).map_err(failed)?;
    // A hard link, unlike a rename, does not replace an existing file.
    let linked = fs::hard_link(&temporary, &path);
    fs::remove_file(&temporary).and(linked).and_then(|()| sync_folder(folder)).map_err(failed)?;
    Ok(path)
}

/// Revokes a key, named by its id or its public key in hexadecimal, and removes its secret from the
/// folder. The time of an existing revocation only ever moves to an earlier one.
///
/// # Errors
/// The key is unknown, the time is in the future, the reason is too long, or a file cannot be read
/// or written.
pub fn revoke_key(
    folder: &Path,
    key: &str,
    at: u64,
    reason: Option<&str>,
    now: u64,
) -> Result<KeyEntry, KeyError> {
    if at > now {
        return Err(KeyError::RevocationInFuture);
    }
    if reason.is_some_and(|reason| !is_valid_reason(reason)) {
        return Err(KeyError::InvalidReason);
    }
    let failed = |error| KeyError::File(folder.to_owned(), error);
    // Held until the end, so that the earlier time wins when two revocations run at once.
    let lock = File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let all = read_folder(folder)?;
    let named = |stored: &&StoredKey| {
        [hex(&key_id(&stored.public_key)), hex(&stored.public_key)].iter().any(|name| name == key)
    };
    let found: Vec<_> = all.iter().filter(named).collect();
    let public_key =
        found.first().ok_or_else(|| KeyError::UnknownKey(folder.to_owned()))?.public_key;
    for stored in found {
        let earlier = stored.content.revoked_at;
        let content = KeyFile {
            secret: None,
            public_key: Some(hex(&public_key)),
            revoked_at: Some(earlier.map_or(at, |earlier| earlier.min(at))),
            revocation_reason: reason
                .map(str::to_owned)
                .or_else(|| stored.content.revocation_reason.clone()),
            ..stored.content.clone()
        };
        let failed = |error| KeyError::File(stored.path.clone(), error);
        let temporary = write_temporary(&stored.path, &content).map_err(failed)?;
        fs::rename(&temporary, &stored.path).and_then(|()| sync_folder(folder)).map_err(failed)?;
    }
    let public_key = hex(&public_key);
    let entry = list_keys(folder, now)?.into_iter().find(|entry| entry.public_key == public_key);
    entry.ok_or_else(|| KeyError::UnknownKey(folder.to_owned()))
}

/// Returns all keys of a folder with their states at `now`, the newest last.
///
/// # Errors
/// A key cannot be read, or other users may read it.
pub fn list_keys(folder: &Path, now: u64) -> Result<Vec<KeyEntry>, KeyError> {
    let all = read_folder(folder)?;
    let revoked = revoked(&all);
    let usable = usable(&all);
    let signs = current(&usable, now).map(|key| key.signing.verifying_key().to_bytes());
    let entry = |stored: &StoredKey| {
        let KeyFile { valid_from, valid_to, revoked_at, revocation_reason, .. } =
            stored.content.clone();
        let state = if revoked.contains(&stored.public_key) {
            KeyState::Revoked
        } else if now < valid_from {
            KeyState::NotYetValid
        } else if now >= valid_to {
            KeyState::Ended
        } else if signs == Some(stored.public_key) {
            KeyState::Current
        } else {
            KeyState::Valid
        };
        KeyEntry {
            key_id: hex(&key_id(&stored.public_key)),
            public_key: hex(&stored.public_key),
            state,
            valid_from,
            valid_to,
            revoked_at,
            revocation_reason,
            file: stored.path.clone(),
        }
    };
    Ok(all.iter().map(entry).collect())
}

/// Returns the keys of a folder that are not revoked, the newest last.
///
/// # Errors
/// A key is malformed, or other users may read it.
pub(crate) fn read_keys(folder: &Path) -> Result<Vec<NotaryKey>, KeyError> {
    Ok(usable(&read_folder(folder)?))
}

/// Returns the newest key that is valid now.
pub(crate) fn current(keys: &[NotaryKey], now: u64) -> Option<&NotaryKey> {
    keys.iter().rev().find(|key| (key.valid_from..key.valid_to).contains(&now))
}

/// Returns the published list of keys, including revoked ones, in the form that `avouch-verify
/// --keys` reads.
pub(crate) fn issuers(name: &str, folder: &Path) -> Result<Vec<serde_json::Value>, KeyError> {
    let issuer = |stored: &StoredKey| {
        let mut issuer = serde_json::json!({
            "name": name,
            "publicKey": hex(&stored.public_key),
            "validFrom": stored.content.valid_from,
            "validTo": stored.content.valid_to,
        });
        if let (Some(at), Some(fields)) = (stored.content.revoked_at, issuer.as_object_mut()) {
            fields.insert("revokedAt".to_owned(), at.into());
        }
        issuer
    };
    Ok(read_folder(folder)?.iter().map(issuer).collect())
}

fn revoked(all: &[StoredKey]) -> Vec<[u8; 32]> {
    let revoked = all.iter().filter(|stored| stored.content.revoked_at.is_some());
    revoked.map(|stored| stored.public_key).collect()
}

/// Returns the keys that are not revoked. A key in two files is revoked if one of them says so.
fn usable(all: &[StoredKey]) -> Vec<NotaryKey> {
    let revoked = revoked(all);
    let usable = all.iter().filter(|stored| !revoked.contains(&stored.public_key));
    let key = |stored: &StoredKey| {
        let (valid_from, valid_to) = (stored.content.valid_from, stored.content.valid_to);
        stored.signing.clone().map(|signing| NotaryKey { signing, valid_from, valid_to })
    };
    usable.filter_map(key).collect()
}

#[cfg(test)]
mod tests;
