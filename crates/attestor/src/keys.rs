//! The keys that attestations are signed with: a folder of files that nobody else may read, each
//! with the time that it may sign in, so that one follows the other. A revoked key stays listed
//! without its secret, so that everybody learns of the revocation.

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
    Content, MAX_KEYS, MAX_REASON_BYTES, Stored, is_reason, read_folder, sync, write_temporary,
};
use crate::examine::random;

const DAY: u64 = 24 * 60 * 60 * 1000;

/// A key that was not revoked, with when it may sign, in milliseconds since 1970.
pub(crate) struct Key {
    pub(crate) signing: SigningKey,
    pub(crate) valid_from: u64,
    pub(crate) valid_to: u64,
}

/// What a folder says of one of its keys. Times are in milliseconds since 1970.
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

/// What a key is used for at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyState {
    /// It signs.
    Current,
    /// It could sign, but a newer one does.
    Valid,
    NotYetValid,
    Ended,
    Revoked,
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
    #[error("{0} has more than {MAX_KEYS} keys: move some that have ended elsewhere")]
    TooMany(PathBuf),
    #[error("{0} has no such key: `avouch-attestor list-keys` prints their ids")]
    Unknown(PathBuf),
    #[error("a revocation cannot be in the future: it holds from when it is published")]
    Future,
    #[error("the reason is longer than {MAX_REASON_BYTES} bytes, or has control characters")]
    Reason,
}

/// Makes a key that may sign from now on, for that many days.
///
/// # Errors
/// The file is there already, or cannot be written.
pub fn new_key(folder: &Path, now: u64, days: u64) -> Result<PathBuf, KeyError> {
    let secret: [u8; 32] = random();
    let valid_to = now.saturating_add(days.saturating_mul(DAY));
    let content = Content {
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
    // A link, unlike a renamed file, does not replace what is there.
    let linked = fs::hard_link(&temporary, &path);
    fs::remove_file(&temporary).and(linked).and_then(|()| sync(folder)).map_err(failed)?;
    Ok(path)
}

/// Revokes a key, named by its id or its public key in hexadecimal, and takes its secret out of
/// the folder. A revocation that is there already is only ever moved to an earlier time.
///
/// # Errors
/// The key is not there, the time is in the future, the reason is too long, or a file cannot be
/// read or written.
pub fn revoke_key(
    folder: &Path,
    key: &str,
    at: u64,
    reason: Option<&str>,
    now: u64,
) -> Result<KeyEntry, KeyError> {
    if at > now {
        return Err(KeyError::Future);
    }
    if reason.is_some_and(|reason| !is_reason(reason)) {
        return Err(KeyError::Reason);
    }
    let failed = |error| KeyError::File(folder.to_owned(), error);
    // Held until the end, so that of two revocations the earlier time stays.
    let lock = File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let all = read_folder(folder)?;
    let named = |stored: &&Stored| {
        [hex(&key_id(&stored.public_key)), hex(&stored.public_key)].iter().any(|name| name == key)
    };
    let found: Vec<_> = all.iter().filter(named).collect();
    let public_key = found.first().ok_or_else(|| KeyError::Unknown(folder.to_owned()))?.public_key;
    for stored in found {
        let earlier = stored.content.revoked_at;
        let content = Content {
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
        fs::rename(&temporary, &stored.path).and_then(|()| sync(folder)).map_err(failed)?;
    }
    let public_key = hex(&public_key);
    let entry = list_keys(folder, now)?.into_iter().find(|entry| entry.public_key == public_key);
    entry.ok_or_else(|| KeyError::Unknown(folder.to_owned()))
}

/// All keys of a folder and what they are used for now, the newest last.
///
/// # Errors
/// One of them cannot be read, or is open to others.
pub fn list_keys(folder: &Path, now: u64) -> Result<Vec<KeyEntry>, KeyError> {
    let all = read_folder(folder)?;
    let revoked = revoked(&all);
    let usable = usable(&all);
    let signs = current(&usable, now).map(|key| key.signing.verifying_key().to_bytes());
    let entry = |stored: &Stored| {
        let Content { valid_from, valid_to, revoked_at, revocation_reason, .. } =
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

/// The keys of a folder that were not revoked, the newest last.
///
/// # Errors
/// One of them cannot be used, or is open to others.
pub(crate) fn read_keys(folder: &Path) -> Result<Vec<Key>, KeyError> {
    Ok(usable(&read_folder(folder)?))
}

/// The newest key that may sign now.
pub(crate) fn current(keys: &[Key], now: u64) -> Option<&Key> {
    keys.iter().rev().find(|key| (key.valid_from..key.valid_to).contains(&now))
}

/// What others are told of the keys, revoked ones too: the list that `avouch-verify --keys` takes.
pub(crate) fn issuers(name: &str, folder: &Path) -> Result<Vec<serde_json::Value>, KeyError> {
    let issuer = |stored: &Stored| {
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

fn revoked(all: &[Stored]) -> Vec<[u8; 32]> {
    let revoked = all.iter().filter(|stored| stored.content.revoked_at.is_some());
    revoked.map(|stored| stored.public_key).collect()
}

/// A key that is in two files is revoked if one of them says so.
fn usable(all: &[Stored]) -> Vec<Key> {
    let revoked = revoked(all);
    let kept = all.iter().filter(|stored| !revoked.contains(&stored.public_key));
    let key = |stored: &Stored| {
        let (valid_from, valid_to) = (stored.content.valid_from, stored.content.valid_to);
        stored.signing.clone().map(|signing| Key { signing, valid_from, valid_to })
    };
    kept.filter_map(key).collect()
}

#[cfg(test)]
mod tests;
