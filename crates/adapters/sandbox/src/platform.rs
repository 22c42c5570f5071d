//! The sandbox platforms of a process: their definitions are published, and their sites get sockets
//! and a certificate.

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use actix_web::dev::Server;
use chrono::{DateTime, Utc};
use domain::workflow::Definition;
use ports::catalogue::{Catalogue, PublishError};

use crate::{HOSTS, SiteCertificate, serve};

/// The definitions in the order of their publication, which is that of listings: what looks for a
/// sandbox platform finds `acme-sandbox` first.
const DEFINITIONS: [&str; 3] = [
    include_str!("../../../domain/platforms/sandbox.json"),
    include_str!("../../../domain/platforms/sandbox-shop.json"),
    include_str!("../../../domain/platforms/sandbox-library.json"),
];

/// The sandbox platforms before their sites are served.
pub struct SandboxPlatform {
    pub definitions: Vec<Definition>,
    socket: TcpListener,
    tls_socket: TcpListener,
    certificate: SiteCertificate,
}

/// Why the sandbox platforms were not set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the definition of a sandbox platform cannot be read")]
    Definition(#[from] serde_json::Error),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Files(#[from] io::Error),
}

impl SandboxPlatform {
    /// Publishes the definitions, binds the sockets of the sites, and reads their certificate from
    /// `folder`, or creates it there. The definitions are published at each start; one that is known
    /// changes nothing, and if its version was published with other content, that content stays.
    ///
    /// # Errors
    /// A definition was not published for another reason, an address is in use, or the folder cannot
    /// be read or written.
    pub async fn open(
        folder: &Path,
        tls_listen: SocketAddr,
        catalogue: &dyn Catalogue,
        now: DateTime<Utc>,
    ) -> Result<Self, SandboxError> {
        let definitions: Result<Vec<Definition>, _> =
            DEFINITIONS.into_iter().map(serde_json::from_str).collect();
        let definitions = definitions?;
        for definition in &definitions {
            publish(catalogue, definition, now).await?;
        }
        let bind = |address| {
            TcpListener::bind(address).map_err(|source| SandboxError::Listen { address, source })
        };
        Ok(Self {
            definitions,
            socket: bind(SocketAddr::from(([127, 0, 0, 1], 0)))?,
            tls_socket: bind(tls_listen)?,
            certificate: SiteCertificate::open(folder)?,
        })
    }

    /// Returns the address of the sites for browsers.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the hosts of the sites, each with its address for browsers.
    pub fn hosts(&self) -> io::Result<HashMap<String, SocketAddr>> {
        let address = self.address()?;
        Ok(HOSTS.into_iter().map(|host| (host.to_owned(), address)).collect())
    }

    /// Returns the address of the sites for the attestor, over TLS.
    pub fn tls_address(&self) -> io::Result<SocketAddr> {
        self.tls_socket.local_addr()
    }

    /// Returns the root of the certificate, in DER.
    #[must_use]
    pub fn root(&self) -> &[u8] {
        &self.certificate.root
    }

    /// Serves the sites on both sockets.
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
        Err(error @ (PublishError::VersionTaken(_) | PublishError::AlreadyPublished(_))) => {
            tracing::warn!("a sandbox platform stays as it was published: {error}");
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
    async fn the_definitions_are_published_at_each_start() {
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

    /// Partners' tests take the first platform whose name contains `sandbox`, in any order.
    #[test]
    fn only_the_first_platform_is_named_sandbox_and_it_stays_the_first_in_any_order() {
        let read = |text| serde_json::from_str::<Definition>(text).unwrap();
        let definitions = DEFINITIONS.map(read);
        let [first, others @ ..] = &definitions;
        assert_eq!(first.platform, "acme-sandbox");
        for other in others {
            assert!(!other.platform.contains("sandbox"), "{}", other.platform);
            assert!(other.platform > first.platform, "{}", other.platform);
            assert!(other.display_name > first.display_name, "{}", other.display_name);
        }
    }

    #[test]
    fn every_host_of_the_definitions_is_served() {
        for text in DEFINITIONS {
            let definition: Definition = serde_json::from_str(text).unwrap();
            assert_eq!(domain::workflow::check(&definition), [], "{}", definition.platform);
            for host in definition.hosts.iter().chain(&definition.sso_hosts) {
                assert!(HOSTS.contains(&host.as_str()), "{host}");
            }
        }
    }

    #[tokio::test]
    async fn a_version_that_was_published_with_other_content_stays() {
        let folder = TempDir::new().unwrap();
        let taken = |_: &Definition| Err(PublishError::VersionTaken("1".into()));
        assert!(open(folder.path(), taken).await.is_ok());
    }

    #[tokio::test]
    async fn a_version_that_was_taken_back_stays_so() {
        let folder = TempDir::new().unwrap();
        let taken_back = |_: &Definition| Err(PublishError::AlreadyPublished("1".into()));
        assert!(open(folder.path(), taken_back).await.is_ok());
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
        catalogue.expect_publish().returning(move |definition, _, _| publish(definition));
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        SandboxPlatform::open(folder, any_port, &catalogue, DateTime::UNIX_EPOCH).await
    }
}
