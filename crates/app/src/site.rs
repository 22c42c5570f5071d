//! The sandbox platform of this process: published, and served to browsers and to the attestor.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
};

use chrono::{DateTime, Utc};
use domain::workflow::Definition;
use ports::catalogue::{Catalogue as _, PublishError};
use store::Store;

use crate::{
    config::Config,
    service::bind,
    storage::{StartupError, error_chain},
};

/// The sandbox's definition; published at each start, which changes nothing where it is known.
const SANDBOX: &str = include_str!("../../domain/platforms/sandbox.json");

/// The site before it is served.
pub(crate) struct SandboxSite {
    pub(crate) definition: Definition,
    socket: TcpListener,
    over_tls: TcpListener,
    identity: sandbox::SiteCertificate,
}

impl SandboxSite {
    pub(crate) async fn open(
        config: &Config,
        store: &Store,
        now: DateTime<Utc>,
    ) -> Result<Self, StartupError> {
        Ok(Self {
            definition: publish_sandbox(store, now).await?,
            socket: TcpListener::bind("127.0.0.1:0")?,
            over_tls: bind(config.attesting.sandbox_listen)?,
            identity: sandbox::SiteCertificate::open(&folder(config))?,
        })
    }

    /// Where browsers are led.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Where the attestor is led.
    pub(crate) fn address_over_tls(&self) -> io::Result<SocketAddr> {
        self.over_tls.local_addr()
    }

    /// What its certificate is under, DER.
    pub(crate) fn root(&self) -> &[u8] {
        &self.identity.root
    }

    /// What it is served with: the sockets for browsers and for the attestor.
    pub(crate) fn into_parts(self) -> (TcpListener, TcpListener, sandbox::SiteCertificate) {
        (self.socket, self.over_tls, self.identity)
    }
}

/// The root that the site's certificate is under, where the service has run.
pub(crate) fn sandbox_root(config: &Config) -> Option<Vec<u8>> {
    let folder = folder(config);
    let made = folder.exists().then(|| sandbox::SiteCertificate::open(&folder))?;
    made.ok().map(|identity| identity.root)
}

fn folder(config: &Config) -> PathBuf {
    config.data_dir.join("sandbox")
}

async fn publish_sandbox(store: &Store, now: DateTime<Utc>) -> Result<Definition, StartupError> {
    let definition: Definition = serde_json::from_str(SANDBOX)?;
    match store.publish(&definition, now).await {
        Ok(_) => Ok(definition),
        Err(error @ PublishError::VersionTaken(_)) => {
            tracing::warn!("the sandbox platform stays as it was: {error}");
            Ok(definition)
        }
        Err(error) => Err(error_chain(error)),
    }
}
