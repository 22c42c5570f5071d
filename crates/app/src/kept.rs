//! What the service keeps, opened: its database, its recordings, and the keys that close them.

use std::{error::Error, path::Path, sync::Arc};

use adapters::{
    diesel::Store,
    recordings::{Films, LocalLinks, ObjectVault, Storage},
    seal::Seal,
};
use ports::clock::Clock;

use crate::{
    config::Config,
    folders::{private_file, private_folder, secret_key},
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Opens the store that a configuration names, with the key that seals its secrets.
pub(crate) async fn open_store(config: &Config) -> Result<(Arc<Store>, [u8; 32]), Failure> {
    private_folder(&config.data_dir)?;
    if let Some(path) = config.database_url.strip_prefix("sqlite://") {
        private_file(Path::new(path))?;
    }
    let key = secret_key(&config.data_dir.join("secret.key"))?;
    let seal = Seal::with(&derive(&key, "seal"), &config.seal_keys);
    let store = Store::open(&config.database_url, Arc::new(seal)).await.map_err(explain)?;
    Ok((Arc::new(store.with_encryption(config.encryption)), key))
}

/// Where recordings are kept, and the films for those who have a link.
pub(crate) fn recordings(
    config: &Config,
    key: &[u8; 32],
    clock: Arc<dyn Clock>,
) -> Result<(Arc<ObjectVault>, Films), Failure> {
    if let Storage::Folder(folder) = &config.storage {
        private_folder(folder)?;
    }
    let links = LocalLinks::new(config.addresses.public.clone(), &derive(key, "films"), clock);
    let seal = Seal::with(&derive(key, "reels"), &config.seal_keys);
    let vault = ObjectVault::open(&config.storage, seal, links.clone()).map_err(explain)?;
    let vault = Arc::new(vault);
    Ok((vault.clone(), Films { vault, links }))
}

/// A key for one purpose alone.
pub(crate) fn derive(key: &[u8; 32], purpose: &str) -> [u8; 32] {
    adapters::sha256(&[key.as_slice(), b":avouch:", purpose.as_bytes()].concat())
}

/// The whole chain of causes in one line.
pub(crate) fn explain(error: impl Error) -> Failure {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line.into()
}
