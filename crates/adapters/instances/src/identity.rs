//! The certificate of an instance, and the authority that the certificates of all instances are from.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    ServerConfig, SignatureScheme,
    client::Resumption,
    crypto::ring::default_provider,
    server::{
        ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::TLS13,
};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, ServerName, UnixTime,
    pem::{self, PemObject as _},
};
use webpki::EndEntityCert;

/// How often the files are looked at, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// The files of an instance's certificate, each in PEM (RFC 7468).
#[derive(Debug, Clone)]
pub struct IdentityFiles {
    /// The certificate, with the intermediate ones after it.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The roots that the certificates of all instances are from.
    pub roots: PathBuf,
    /// The DNS name that the certificate has, the same for all of its kind: it tells them from other
    /// certificates of the same authority.
    pub name: String,
    /// The DNS name that the certificates of the other sides have.
    pub peer: String,
}

/// Why the files of an instance's certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is larger than {MAX_FILE_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not in PEM: {source}", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{} has no certificate", .0.display())]
    Empty(PathBuf),
    #[error("`{0}` is not a DNS name")]
    Name(String),
    #[error("the certificate is not valid for `{0}`, the name of an instance")]
    OtherName(String),
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] Error),
    #[error("the roots cannot be used: {0}")]
    Roots(#[from] rustls::server::VerifierBuilderError),
}

/// The certificate of this instance and the roots of the others. A file that is replaced is read again
/// within about 2 s of its next use; if it cannot be used, what was read before stays in use and an error is logged.
#[derive(Debug)]
pub struct InstanceIdentity {
    files: IdentityFiles,
    name: ServerName<'static>,
    peer: ServerName<'static>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    loaded: Arc<Loaded>,
    checked_at: Instant,
}

/// What is made of one version of the files.
#[derive(Debug)]
pub(crate) struct Loaded {
    versions: [Option<SystemTime>; 3],
    certified: Arc<CertifiedKey>,
    verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) client: Arc<ClientConfig>,
}

impl InstanceIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or is larger than 256 KiB; it has no certificates or keys; certificate and key
    /// do not belong together; the certificate does not have the name.
    pub fn open(files: IdentityFiles) -> Result<Arc<Self>, IdentityError> {
        let parse = |name: &String| {
            ServerName::try_from(name.clone()).map_err(|_| IdentityError::Name(name.clone()))
        };
        let (name, peer) = (parse(&files.name)?, parse(&files.peer)?);
        let loaded = Arc::new(load(&files, &name)?);
        let state = State { loaded, checked_at: Instant::now() };
        Ok(Arc::new(Self { files, name, peer, state: Mutex::new(state) }))
    }

    /// Returns the TLS configuration of the server for other instances. It follows changes of the files.
    ///
    /// Connections are not resumed, so that each handshake verifies the certificate again.
    ///
    /// # Errors
    /// Never with the algorithms that this program is built with.
    pub fn server_config(self: &Arc<Self>) -> Result<ServerConfig, IdentityError> {
        let follower = Arc::new(Follower(self.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(follower.clone())
            .with_cert_resolver(follower);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Returns whether the certificate is valid at this time for other instances: by the roots, as they
    /// verify it themselves.
    ///
    /// # Errors
    /// It is not, or not at this time.
    pub(crate) fn is_valid_at(&self, at: UnixTime) -> Result<(), Error> {
        let loaded = self.current();
        let (first, others) =
            loaded.certified.cert.split_first().ok_or(Error::NoCertificatesPresented)?;
        loaded.verifier.verify_client_cert(first, others, at).map(drop)
    }

    /// Returns the name that the other side must have.
    pub(crate) const fn peer(&self) -> &ServerName<'static> {
        &self.peer
    }

    /// Returns what the files contain now.
    pub(crate) fn current(&self) -> Arc<Loaded> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked_at.elapsed() >= CHECK_INTERVAL {
            state.checked_at = Instant::now();
            if versions(&self.files) != state.loaded.versions {
                match load(&self.files, &self.name) {
                    Ok(loaded) => {
                        tracing::info!("the certificate of this instance was read again");
                        state.loaded = Arc::new(loaded);
                    }
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(
                            error,
                            "the new certificate of this instance cannot be used; the one before stays in use"
                        );
                    }
                }
            }
        }
        state.loaded.clone()
    }
}

/// Presents the newest certificate, and verifies those of other instances by the newest roots.
#[derive(Debug)]
struct Follower(Arc<InstanceIdentity>);

impl ResolvesServerCert for Follower {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current().certified.clone())
    }
}

impl ClientCertVerifier for Follower {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Instances have one certificate each and need no hint.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified =
            self.0.current().verifier.verify_client_cert(certificate, intermediates, now)?;
        has_name(certificate, &self.0.peer)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        self.0.current().verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        self.0.current().verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.current().verifier.supported_verify_schemes()
    }
}

fn has_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let end = EndEntityCert::try_from(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    end.verify_is_valid_for_subject_name(name)
        .map_err(|_| Error::InvalidCertificate(CertificateError::NotValidForName))
}

fn load(files: &IdentityFiles, name: &ServerName<'static>) -> Result<Loaded, IdentityError> {
    // Taken before the files are read: a file that is replaced meanwhile is read again.
    let versions = versions(files);
    let chain = certificates(&files.certificate)?;
    let key = read(&files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|source| IdentityError::Pem { path: files.key.clone(), source })?;
    let mut roots = RootCertStore::empty();
    for root in certificates(&files.roots)? {
        roots.add(root)?;
    }
    let roots = Arc::new(roots);
    let first = chain.first().ok_or_else(|| IdentityError::Empty(files.certificate.clone()))?;
    has_name(first, name).map_err(|_| IdentityError::OtherName(files.name.clone()))?;
    let provider = Arc::new(default_provider());
    let certified = CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider)?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build()?;
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)?;
    client.resumption = Resumption::disabled();
    Ok(Loaded { versions, certified: Arc::new(certified), verifier, client: Arc::new(client) })
}

fn versions(files: &IdentityFiles) -> [Option<SystemTime>; 3] {
    [&files.certificate, &files.key, &files.roots]
        .map(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|source| IdentityError::Pem { path: path.to_owned(), source })?;
    if found.is_empty() { Err(IdentityError::Empty(path.to_owned())) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let failed = |source| IdentityError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
        return Err(IdentityError::TooLarge(path.to_owned()));
    }
    fs::read(path).map_err(failed)
}
