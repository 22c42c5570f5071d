//! `secret.key`, which all processes of a deployment have in common: how it is created, compared
//! with the database, and rotated.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use ports::{
    StoreError,
    deployment_keys::{DeploymentKey, DeploymentKeys},
    encryption::{Cipher as _, CipherError},
    random::RandomSource as _,
    secret_key::{RotatedFingerprints, SecretKeyError, SecretKeyRotation},
};
use ring::digest::{SHA256, digest};

use crate::{
    clock::{HmacTokenIssuer, SystemRandom},
    data_dir::{DataDirError, KEY_BYTES, add_key, read_key, replace_key},
    encryption::{EncryptionKeys, XChaChaCipher},
};

const CURRENT_FILE: &str = "secret.key";
/// The previous key. It decrypts and verifies, but does not encrypt or sign.
const EARLIER_FILE: &str = "secret.key.old";
/// The column of the encrypted stable key.
const STABLE_KEY_CONTEXT: &str = "deployment_key.lasting";
const FINGERPRINT_BYTES: usize = 16;

/// The secret keys of this process.
pub struct SecretKeys {
    folder: PathBuf,
    current: [u8; KEY_BYTES],
    earlier: Option<[u8; KEY_BYTES]>,
    /// Whether there is no file yet, so that the current key was generated.
    is_generated: bool,
}

/// Whether the files of this process and the database agree on the secret key.
#[derive(Clone, PartialEq, Eq)]
pub enum Agreement {
    /// They agree.
    Agreed {
        /// The key whose uses outlast a rotation of `secret.key`.
        stable_key: [u8; KEY_BYTES],
    },
    /// Another process created the file in the meantime: it has to be read again.
    ReadAgain,
}

/// Why a secret key cannot be used or rotated.
#[derive(Debug, thiserror::Error)]
pub enum KeyAgreementError {
    #[error(
        "the database belongs to the secret.key with the fingerprint {recorded}, {found}: copy the \
         file from another process of this deployment, or from your backup"
    )]
    OtherKey { recorded: String, found: String },
    #[error(
        "the database has data, and there is no {}: copy it from another process of this \
         deployment, or from your backup",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("the deployment's key in the database is damaged")]
    Damaged,
    #[error("there is {}: end that change before the next", .0.display())]
    RotationPending(PathBuf),
    #[error(transparent)]
    Cipher(#[from] CipherError),
    #[error(transparent)]
    File(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SecretKeys {
    /// Reads the key files of a folder. Without a file, a key is generated, which is written when
    /// the database accepts it.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub fn read(folder: &Path) -> Result<Self, DataDirError> {
        let current = read_key(&folder.join(CURRENT_FILE))?;
        let earlier = read_key(&folder.join(EARLIER_FILE))?;
        Ok(Self {
            folder: folder.to_owned(),
            current: current.unwrap_or_else(|| SystemRandom.random_bytes()),
            earlier,
            is_generated: current.is_none(),
        })
    }

    /// Returns a key for one purpose only.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; KEY_BYTES] {
        derive(&self.current, purpose)
    }

    /// Returns a cipher for one purpose only. The configured keys encrypt, if there are any.
    #[must_use]
    pub fn cipher(&self, purpose: &str, keys: &EncryptionKeys) -> XChaChaCipher {
        let earlier = self.earlier.map(|key| derive(&key, purpose));
        XChaChaCipher::with(&self.derive(purpose), keys).opening(earlier.as_ref())
    }

    /// Returns the issuer of the tokens of applicants, observers and mails.
    #[must_use]
    pub fn token_issuer(&self, stable_key: [u8; KEY_BYTES]) -> HmacTokenIssuer {
        let earlier = self.earlier.map(|key| derive(&key, "tokens"));
        HmacTokenIssuer::with(self.derive("tokens"), earlier, stable_key)
    }

    fn fingerprint(&self) -> Vec<u8> {
        fingerprint(&self.current)
    }

    /// Returns whether a fingerprint is that of the current or of the earlier key.
    fn has_fingerprint(&self, recorded: &[u8]) -> bool {
        let earlier = self.earlier.as_ref().map(fingerprint);
        self.fingerprint() == recorded || earlier.is_some_and(|earlier| earlier == recorded)
    }

    /// Compares the files with the fingerprint that a database records, and changes nothing.
    /// Returns the result in one line.
    ///
    /// # Errors
    /// The service would not start.
    pub fn compare(&self, recorded: Option<&[u8]>) -> Result<String, KeyAgreementError> {
        match (self.is_generated, recorded) {
            (true, None) => Ok("is made at the first start".into()),
            (false, None) => Ok(format!("fingerprint {}", hex(&self.fingerprint()))),
            (false, Some(recorded)) if self.has_fingerprint(recorded) => {
                Ok(format!("fingerprint {}, as in the database", hex(recorded)))
            }
            (_, Some(recorded)) => Err(self.other_key(recorded)),
        }
    }

    fn other_key(&self, recorded: &[u8]) -> KeyAgreementError {
        let path = self.folder.join(CURRENT_FILE);
        let found = if self.is_generated {
            format!("and there is no {}", path.display())
        } else {
            format!("and {} has {}", path.display(), hex(&self.fingerprint()))
        };
        KeyAgreementError::OtherKey { recorded: hex(recorded), found }
    }

    /// Ensures that the database belongs to the secret key of this process. At the first start of a
    /// deployment, the file is created and the key is recorded in the database.
    ///
    /// # Errors
    /// The database belongs to another key, or has data while there is no key file. Nothing is
    /// created then.
    pub async fn agree(
        &mut self,
        database: &dyn DeploymentKeys,
    ) -> Result<Agreement, KeyAgreementError> {
        let recorded = match database.deployment_key().await? {
            Some(recorded) => recorded,
            None => match self.claim(database).await? {
                Some(recorded) => recorded,
                None => return Ok(Agreement::ReadAgain),
            },
        };
        if self.is_generated || !self.has_fingerprint(&recorded.fingerprint) {
            return Err(self.other_key(&recorded.fingerprint));
        }
        let cipher = self.stable_key_cipher();
        let stable_key = cipher.decrypt(STABLE_KEY_CONTEXT, &recorded.encrypted_stable_key)?;
        let stable_key = stable_key.try_into().map_err(|_| KeyAgreementError::Damaged)?;
        Ok(Agreement::Agreed { stable_key })
    }

    /// Records this key in a database without a record, and returns the record. Returns `None` if
    /// another process created the file in the meantime.
    async fn claim(
        &mut self,
        database: &dyn DeploymentKeys,
    ) -> Result<Option<DeploymentKey>, KeyAgreementError> {
        let path = self.folder.join(CURRENT_FILE);
        let was_generated = self.is_generated;
        if was_generated {
            if database.has_any_team().await? {
                return Err(KeyAgreementError::Missing(path));
            }
            if !add_key(&path, &self.current)? {
                return Ok(None);
            }
            self.is_generated = false;
        }
        // Hashes that are older than the record were made with the token key of that time.
        let own = self.record(&self.derive("tokens"))?;
        let recorded = database.claim_deployment_key(&own).await?;
        if was_generated && recorded.fingerprint != own.fingerprint {
            // Another process was first, and nothing was encrypted with this key.
            let _ = fs::remove_file(&path);
            self.is_generated = true;
        }
        Ok(Some(recorded))
    }

    fn stable_key_cipher(&self) -> XChaChaCipher {
        self.cipher("lasting", &EncryptionKeys::default())
    }

    fn record(&self, stable_key: &[u8; KEY_BYTES]) -> Result<DeploymentKey, KeyAgreementError> {
        let encrypted_stable_key =
            self.stable_key_cipher().encrypt(STABLE_KEY_CONTEXT, stable_key)?;
        Ok(DeploymentKey { fingerprint: self.fingerprint(), encrypted_stable_key })
    }

    /// Records the current key in the database, if that still records the earlier one. It is called
    /// when the earlier key decrypts nothing any more.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn record_current(
        &self,
        database: &dyn DeploymentKeys,
        stable_key: &[u8; KEY_BYTES],
    ) -> Result<(), KeyAgreementError> {
        let recorded = database.deployment_key().await?;
        let outdated = recorded.filter(|recorded| recorded.fingerprint != self.fingerprint());
        if let Some(outdated) = outdated {
            database.renew_deployment_key(&outdated, &self.record(stable_key)?).await?;
        }
        Ok(())
    }

    /// Generates a new key, and keeps the current one as the earlier one.
    ///
    /// # Errors
    /// There is an earlier key, which may still decrypt values; or a file cannot be written.
    pub fn rotate(&self) -> Result<RotatedFingerprints, KeyAgreementError> {
        let earlier = self.folder.join(EARLIER_FILE);
        if self.earlier.is_some() {
            return Err(KeyAgreementError::RotationPending(earlier));
        }
        let key = SystemRandom.random_bytes();
        replace_key(&self.folder.join(CURRENT_FILE), &earlier, &key)?;
        let earlier = hex(&self.fingerprint());
        Ok(RotatedFingerprints { current: hex(&fingerprint(&key)), earlier })
    }
}

/// The secret key of a deployment that agrees with its database.
pub struct DeploymentSecret {
    pub keys: SecretKeys,
    /// The key whose uses outlast a rotation.
    pub stable_key: [u8; KEY_BYTES],
    pub database: Arc<dyn DeploymentKeys>,
}

#[async_trait]
impl SecretKeyRotation for DeploymentSecret {
    fn rotate(&self) -> Result<RotatedFingerprints, SecretKeyError> {
        self.keys.rotate().map_err(SecretKeyError::new)
    }

    async fn record_current(&self) -> Result<(), SecretKeyError> {
        let recorded = self.keys.record_current(&*self.database, &self.stable_key).await;
        recorded.map_err(SecretKeyError::new)
    }
}

fn derive(key: &[u8; KEY_BYTES], purpose: &str) -> [u8; KEY_BYTES] {
    let hash = digest(&SHA256, &[key.as_slice(), b":avouch:", purpose.as_bytes()].concat());
    let mut derived = [0; KEY_BYTES];
    derived.iter_mut().zip(hash.as_ref()).for_each(|(to, from)| *to = *from);
    derived
}

fn fingerprint(key: &[u8; KEY_BYTES]) -> Vec<u8> {
    derive(key, "fingerprint").iter().take(FINGERPRINT_BYTES).copied().collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
