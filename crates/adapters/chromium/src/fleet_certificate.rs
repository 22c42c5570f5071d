//! The certificate of the proxy that a fleet's browsers use.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    ServerConfig,
    crypto::ring::default_provider,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_rustls::TlsAcceptor;

use crate::fleet_address::CertificateFiles;

/// How often the files are looked at, at most.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The maximum size of a file.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Why the files of the proxy's certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyCertificateError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is larger than {MAX_FILE_BYTES} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not in PEM: {source}", path.display())]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{} has no certificate", .0.display())]
    Empty(PathBuf),
    #[error("the certificate cannot be used: {0}")]
    Tls(#[from] rustls::Error),
}

/// Returns an acceptor that presents the certificate. Files that are replaced are read again within about
/// 2 s of their next use; if they cannot be used, what was read before stays in use and an error is logged.
pub(crate) fn acceptor(files: CertificateFiles) -> Result<TlsAcceptor, ProxyCertificateError> {
    let (versions, certified) = (versions(&files), load(&files)?);
    let state = Mutex::new(State { versions, certified, checked_at: Instant::now() });
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NewestCertificate { files, state }));
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[derive(Debug)]
struct NewestCertificate {
    files: CertificateFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    versions: [Option<SystemTime>; 2],
    certified: Arc<CertifiedKey>,
    checked_at: Instant,
}

impl ResolvesServerCert for NewestCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.checked_at.elapsed() >= CHECK_INTERVAL {
            state.checked_at = Instant::now();
            // Taken before the files are read: a file that is replaced meanwhile is read again.
            let versions = versions(&self.files);
            if versions != state.versions {
                match load(&self.files) {
                    Ok(certified) => {
                        tracing::info!("the certificate of the fleet's proxy was read again");
                        (state.certified, state.versions) = (certified, versions);
                    }
                    Err(error) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(
                            error,
                            "the new certificate of the fleet's proxy cannot be used; the one before stays in use"
                        );
                    }
                }
            }
        }
        Some(state.certified.clone())
    }
}

fn load(files: &CertificateFiles) -> Result<Arc<CertifiedKey>, ProxyCertificateError> {
    let pem = |path: &Path| {
        let path = path.to_owned();
        move |source| ProxyCertificateError::Pem { path, source }
    };
    let text = read(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(pem(&files.certificate))?;
    if chain.is_empty() {
        return Err(ProxyCertificateError::Empty(files.certificate.clone()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(pem(&files.key))?;
    Ok(Arc::new(CertifiedKey::from_der(chain, key, &default_provider())?))
}

fn versions(files: &CertificateFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key]
        .map(|path| fs::metadata(path).and_then(|data| data.modified()).ok())
}

fn read(path: &Path) -> Result<Vec<u8>, ProxyCertificateError> {
    let failed = |source| ProxyCertificateError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
        return Err(ProxyCertificateError::TooLarge(path.to_owned()));
    }
    fs::read(path).map_err(failed)
}
