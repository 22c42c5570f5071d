//! The sandbox platform of a process: its definition is published, and its site gets sockets and a
//! certificate.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use actix_web::dev::Server;
use chrono::{DateTime, Utc};
use domain::workflow::Definition;
use ports::catalogue::{Catalogue, PublishError};

use crate::{SiteCertificate, serve};

const DEFINITION: &str = include_str!("../../../domain/platforms/sandbox.json");

/// The sandbox platform before its site is served.
pub struct SandboxPlatform {
    pub definition: Definition,
    socket: TcpListener,
    tls_socket: TcpListener,
    certificate: SiteCertificate,
}

/// Why the sandbox platform was not set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the definition of the sandbox platform cannot be read")]
    Definition(#[from] serde_json::Error),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Files(#[from] io::Error),
}

impl SandboxPlatform {
    /// Publishes the definition, binds the sockets of the site, and reads its certificate from
    /// `folder`, or creates it there. The definition is published at each start; if it is known,
    /// this changes nothing, and if its version was published with other content, that content
    /// stays.
    ///
    /// # Errors
    /// The definition was not published for another reason, an address is in use, or the folder
    /// cannot be read or written.
    pub async fn open(
        folder: &Path,
        tls_listen: SocketAddr,
        catalogue: &dyn Catalogue,
        now: DateTime<Utc>,
    ) -> Result<Self, SandboxError> {
        let definition = serde_json::from_str(DEFINITION)?;
        publish(catalogue, &definition, now).await?;
        let bind = |address| {
            TcpListener::bind(address).map_err(|source| SandboxError::Listen { address, source })
        };
        Ok(Self {
            definition,
            socket: bind(SocketAddr::from(([127, 0, 0, 1], 0)))?,
            tls_socket: bind(tls_listen)?,
            certificate: SiteCertificate::open(folder)?,
        })
    }

    /// Returns the address of the site for browsers.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the address of the site for the attestor, over TLS.
    pub fn tls_address(&self) -> io::Result<SocketAddr> {
        self.tls_socket.local_addr()
    }

    /// Returns the root certificate of the site's certificate, in DER.
    #[must_use]
    pub fn root(&self) -> &[u8] {
        &self.certificate.root
    }

    /// Serves the site on both sockets.
    pub fn serve(self) -> io::Result<Server> {
        serve(self.socket, self.tls_socket, self.certificate)
    }
}

async fn publish(
    catalogue: &dyn Catalogue,
    definition: &Definition,
    now: DateTime<Utc>,
) -> Result<(), PublishError> {
    match catalogue.publish(definition, None, now).await {
        Err(error @ PublishError::VersionTaken(_)) => {
            tracing::warn!("the sandbox platform stays as it was published: {error}");
            Ok(())
        }
        published => published.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use domain::{id::PlatformId, session::DefinitionVersion};
    use ports::{StoreError, catalogue::MockCatalogue};
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn the_definition_is_published_at_each_start() {
        let folder = TempDir::new().unwrap();
        let mut roots = vec![];
        for _ in 0..2 {
            let opened = open(folder.path(), |definition| {
                let version = definition.version.clone();
                Ok((PlatformId(1), DefinitionVersion { version, sha256: String::new() }))
            });
            let platform = opened.await.unwrap();
            assert!(platform.address().unwrap().ip().is_loopback());
            assert_ne!(platform.address().unwrap(), platform.tls_address().unwrap());
            roots.push(platform.root().to_vec());
        }
        assert_eq!(roots[0], roots[1], "the certificate is created once");
        assert_eq!(SiteCertificate::existing_root(folder.path()), Some(roots.remove(0)));
    }

    #[tokio::test]
    async fn a_version_that_was_published_with_other_content_stays() {
        let folder = TempDir::new().unwrap();
        let taken = |_: &Definition| Err(PublishError::VersionTaken("1".into()));
        assert!(open(folder.path(), taken).await.is_ok());
    }

    #[tokio::test]
    async fn nothing_is_bound_or_created_when_the_catalogue_fails() {
        let parent = TempDir::new().unwrap();
        let folder = parent.path().join("sandbox");
        let failure =
            |_: &Definition| Err(StoreError::new("publish a definition", "it is gone").into());
        assert!(matches!(open(&folder, failure).await, Err(SandboxError::Publish(_))));
        assert!(!folder.exists());
        assert_eq!(SiteCertificate::existing_root(&folder), None);
    }

    async fn open(
        folder: &Path,
        publish: impl Fn(&Definition) -> Result<(PlatformId, DefinitionVersion), PublishError>
        + Send
        + 'static,
    ) -> Result<SandboxPlatform, SandboxError> {
        let mut catalogue = MockCatalogue::new();
        catalogue.expect_publish().times(1).returning(move |definition, _, _| publish(definition));
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        SandboxPlatform::open(folder, any_port, &catalogue, DateTime::UNIX_EPOCH).await
    }
}
