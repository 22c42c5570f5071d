//! `secret.key`: one for all processes of a deployment, which the database knows by its fingerprint,
//! and how it is changed.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use ports::encryption::Cipher as _;
use ports::random::RandomSource as _;
use sha2::{Digest as _, Sha256};
use store::{DeploymentKey, Store};
use system::clock::{HmacTokenIssuer, SystemRandom};
use system::encryption::{EncryptionKeys, XChaChaCipher};

use crate::{
    data_dir::{add_key, read_key, replace_key},
    storage::{StartupError, error_chain},
};

const CURRENT: &str = "secret.key";
/// What was the key before; it opens and is taken, and does not sign or seal any more.
const EARLIER: &str = "secret.key.old";
/// Where the lasting key is kept.
const PLACE: &str = "deployment_key.lasting";
const FINGERPRINT_BYTES: usize = 16;

/// The keys of this process.
pub(crate) struct SecretKeys {
    folder: PathBuf,
    current: [u8; 32],
    earlier: Option<[u8; 32]>,
    /// Whether there was no file.
    made: bool,
}

impl SecretKeys {
    /// Reads the files, or makes a key up that is written once the database takes it.
    pub(crate) fn read(folder: &Path) -> Result<Self, StartupError> {
        let found = read_key(&folder.join(CURRENT))?;
        let earlier = read_key(&folder.join(EARLIER))?;
        let made = found.is_none();
        let current = found.unwrap_or_else(|| SystemRandom.random_bytes());
        Ok(Self { folder: folder.to_owned(), current, earlier, made })
    }

    /// A key for one purpose alone.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        derive(&self.current, purpose)
    }

    /// A seal for one purpose alone; the configured keys close, where there are any.
    pub(crate) fn seal(&self, purpose: &str, keys: &EncryptionKeys) -> XChaChaCipher {
        let earlier = self.earlier.map(|key| derive(&key, purpose));
        XChaChaCipher::with(&self.derive(purpose), keys).opening(earlier.as_ref())
    }

    /// Tokens for applicants, watchers and mails.
    pub(crate) fn tokens(&self, lasting: [u8; 32]) -> HmacTokenIssuer {
        let earlier = self.earlier.map(|key| derive(&key, "tokens"));
        HmacTokenIssuer::with(self.derive("tokens"), earlier, lasting)
    }

    fn fingerprint(&self) -> Vec<u8> {
        fingerprint(&self.current)
    }

    fn knows(&self, known: &[u8]) -> bool {
        let earlier = self.earlier.as_ref().map(fingerprint);
        self.fingerprint() == known || earlier.is_some_and(|earlier| earlier == known)
    }

    /// Compares with what a database says, which was not changed for it; answers in one line.
    ///
    /// # Errors
    /// The service would not start.
    pub(crate) fn compare(&self, known: Option<&[u8]>) -> Result<String, StartupError> {
        match (self.made, known) {
            (true, None) => Ok("is made at the first start".into()),
            (false, None) => Ok(format!("fingerprint {}", hex(&self.fingerprint()))),
            (false, Some(known)) if self.knows(known) => {
                Ok(format!("fingerprint {}, as in the database", hex(known)))
            }
            (_, Some(known)) => Err(self.refusal(known)),
        }
    }

    fn refusal(&self, known: &[u8]) -> StartupError {
        let (path, known) = (self.folder.join(CURRENT), hex(known));
        let here = if self.made {
            format!("and there is no {}", path.display())
        } else {
            format!("and {} has {}", path.display(), hex(&self.fingerprint()))
        };
        let what = "copy the file from another process of this deployment, or from your backup";
        format!(
            "the database belongs to the secret.key with the fingerprint {known}, {here}: {what}"
        )
        .into()
    }

    /// Makes sure that the database belongs to this key, and answers the key that lasts. At the
    /// first start of a deployment the file is made and the database told; `None` where another
    /// process made the file meanwhile, and it has to be read again.
    ///
    /// # Errors
    /// The database belongs to another key, or has data and there is no key.
    pub(crate) async fn agree(&mut self, store: &Store) -> Result<Option<[u8; 32]>, StartupError> {
        let known = match store.deployment_key().await.map_err(error_chain)? {
            Some(known) => known,
            None => match self.claim(store).await? {
                Some(known) => known,
                None => return Ok(None),
            },
        };
        if self.made || !self.knows(&known.fingerprint) {
            return Err(self.refusal(&known.fingerprint));
        }
        let opened = self.lasting_seal().decrypt(PLACE, &known.lasting).map_err(error_chain)?;
        let lasting = opened.try_into();
        lasting.map(Some).map_err(|_| "the deployment's key in the database is damaged".into())
    }

    async fn claim(&mut self, store: &Store) -> Result<Option<DeploymentKey>, StartupError> {
        let path = self.folder.join(CURRENT);
        let mine = self.made;
        if mine {
            if store.has_any_team().await.map_err(error_chain)? {
                let what = "copy it from another process of this deployment, or from your backup";
                let path = path.display();
                return Err(format!("the database has data, and there is no {path}: {what}").into());
            }
            if !add_key(&path, &self.current)? {
                return Ok(None);
            }
            self.made = false;
        }
        // Marks and hashes of before are of the key that signed then.
        let row = self.row(&self.derive("tokens"))?;
        let known = store.claim_deployment_key(&row).await.map_err(error_chain)?;
        if mine && known.fingerprint != row.fingerprint {
            // Somebody else was first: nothing was done with this one.
            let _ = fs::remove_file(&path);
            self.made = true;
        }
        Ok(Some(known))
    }

    fn lasting_seal(&self) -> XChaChaCipher {
        self.seal("lasting", &EncryptionKeys::default())
    }

    fn row(&self, lasting: &[u8; 32]) -> Result<DeploymentKey, StartupError> {
        let lasting = self.lasting_seal().encrypt(PLACE, lasting).map_err(error_chain)?;
        Ok(DeploymentKey { fingerprint: self.fingerprint(), lasting })
    }

    /// Tells the database that it belongs to the current key, which it may have known as new.
    pub(crate) async fn settle(
        &self,
        store: &Store,
        lasting: &[u8; 32],
    ) -> Result<(), StartupError> {
        let known = store.deployment_key().await.map_err(error_chain)?;
        if let Some(known) = known.filter(|known| known.fingerprint != self.fingerprint()) {
            store.renew_deployment_key(&known, &self.row(lasting)?).await.map_err(error_chain)?;
        }
        Ok(())
    }

    /// Makes a new key and keeps the current one as the earlier; answers the fingerprints of both.
    pub(crate) fn rotate(&self) -> Result<(String, String), StartupError> {
        let earlier = self.folder.join(EARLIER);
        if self.earlier.is_some() {
            let earlier = earlier.display();
            return Err(format!("there is {earlier}: end that change before the next").into());
        }
        let key = SystemRandom.random_bytes();
        replace_key(&self.folder.join(CURRENT), &earlier, &key)?;
        Ok((hex(&fingerprint(&key)), hex(&self.fingerprint())))
    }
}

fn derive(key: &[u8; 32], purpose: &str) -> [u8; 32] {
    Sha256::digest([key.as_slice(), b":avouch:", purpose.as_bytes()].concat()).into()
}

fn fingerprint(key: &[u8; 32]) -> Vec<u8> {
    derive(key, "fingerprint").iter().take(FINGERPRINT_BYTES).copied().collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
