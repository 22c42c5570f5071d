//! Opens what the service stores: its database, its recordings, and the keys that encrypt them.

use std::{error::Error, path::Path, sync::Arc};

use objects::{LinkSigner, ObjectStorage, ObjectVault, RecordingFiles};
use ports::clock::Clock;
use store::Store;
use system::{
    data_dir::{private_file, private_folder},
    secret_key::{Agreement, SecretKeys},
};

use crate::config::Config;

pub(crate) type StartupError = Box<dyn Error + Send + Sync>;

/// Attempts to open the store. The second is for a process that starts with the same empty folder as
/// another one, and reads the key that the other one created.
const MAX_KEY_ATTEMPTS: usize = 3;

/// The storage and keys that are opened at the start.
pub(crate) struct OpenedStorage {
    pub(crate) store: Arc<Store>,
    pub(crate) keys: SecretKeys,
    /// The key whose uses outlast a rotation of `secret.key`.
    pub(crate) stable_key: [u8; 32],
}

/// Opens the store that a configuration names, with the keys that it belongs to.
pub(crate) async fn open_store(config: &Config) -> Result<OpenedStorage, StartupError> {
    private_folder(&config.data_dir).map_err(error_chain)?;
    if let Some(path) = config.database_url.file() {
        private_file(Path::new(path)).map_err(error_chain)?;
    }
    for _ in 0..MAX_KEY_ATTEMPTS {
        let mut keys = SecretKeys::read(&config.data_dir).map_err(error_chain)?;
        let cipher = Arc::new(keys.cipher("seal", &config.seal_keys));
        let store =
            Store::connect(&config.database_url, config.timeouts, config.schema, cipher).await;
        let store = Arc::new(store.map_err(error_chain)?.with_encryption(config.encryption));
        match keys.agree(&*store).await.map_err(error_chain)? {
            Agreement::Agreed { stable_key } => {
                return Ok(OpenedStorage { store, keys, stable_key });
            }
            Agreement::ReadAgain => (),
        }
    }
    Err("secret.key comes and goes: something else changes the data folder".into())
}

/// Opens the vault of recordings, and the files that a link to a recording leads to.
pub(crate) fn recordings(
    config: &Config,
    keys: &SecretKeys,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<ObjectVault>, RecordingFiles), StartupError> {
    if let ObjectStorage::Folder(folder) = &config.storage {
        private_folder(folder).map_err(error_chain)?;
    }
    let links = LinkSigner::new(config.addresses.public.clone(), &keys.derive("films"), clock);
    let cipher = Arc::new(keys.cipher("reels", &config.seal_keys));
    let vault = ObjectVault::open(&config.storage, cipher, links.clone()).map_err(error_chain)?;
    let vault = Arc::new(vault);
    Ok((vault.clone(), RecordingFiles { vault, links }))
}

/// Returns an error and all its causes in one line.
pub(crate) fn error_chain(error: impl Error + 'static) -> StartupError {
    application::error_chain(&error).into()
}
