//! What the service keeps, opened: its database, its recordings, and the keys that close them.

use std::{error::Error, path::Path, sync::Arc};

use objects::{LinkSigner, ObjectStorage, ObjectVault, RecordingFiles};
use ports::clock::Clock;
use store::Store;

use crate::{
    config::Config,
    data_dir::{private_file, private_folder},
    secret_key::SecretKeys,
};

pub(crate) type StartupError = Box<dyn Error + Send + Sync>;

/// A second process that starts on the same empty folder reads the key that the first one made.
const MAX_KEY_ATTEMPTS: usize = 3;

/// What is opened at a start.
pub(crate) struct OpenedStorage {
    pub(crate) store: Arc<Store>,
    pub(crate) keys: SecretKeys,
    /// The key whose uses outlast a change of `secret.key`.
    pub(crate) lasting: [u8; 32],
}

/// Opens the store that a configuration names, with the keys that it belongs to.
pub(crate) async fn open_store(config: &Config) -> Result<OpenedStorage, StartupError> {
    private_folder(&config.data_dir)?;
    if let Some(path) = config.database_url.file() {
        private_file(Path::new(path))?;
    }
    for _ in 0..MAX_KEY_ATTEMPTS {
        let mut keys = SecretKeys::read(&config.data_dir)?;
        let seal = Arc::new(keys.seal("seal", &config.seal_keys));
        let store = Store::connect(&config.database_url, config.timeouts, seal).await;
        let store = Arc::new(store.map_err(error_chain)?.with_encryption(config.encryption));
        if let Some(lasting) = keys.agree(&store).await? {
            return Ok(OpenedStorage { store, keys, lasting });
        }
    }
    Err("secret.key comes and goes: something else changes the data folder".into())
}

/// Where recordings are kept, and the films for those who have a link.
pub(crate) fn recordings(
    config: &Config,
    keys: &SecretKeys,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<ObjectVault>, RecordingFiles), StartupError> {
    if let ObjectStorage::Folder(folder) = &config.storage {
        private_folder(folder)?;
    }
    let links = LinkSigner::new(config.addresses.public.clone(), &keys.derive("films"), clock);
    let seal = Arc::new(keys.seal("reels", &config.seal_keys));
    let vault = ObjectVault::open(&config.storage, seal, links.clone()).map_err(error_chain)?;
    let vault = Arc::new(vault);
    Ok((vault.clone(), RecordingFiles { vault, links }))
}

/// The whole chain of causes in one line.
pub(crate) fn error_chain(error: impl Error) -> StartupError {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line.into()
}
