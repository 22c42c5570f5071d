//! PEM files of certificates and keys (RFC 7468), and the machine's roots.

use std::{fs, io::Read as _, os::unix::fs::MetadataExt as _, path::Path, sync::OnceLock};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use super::tls::InvalidTls;

/// The maximum size of a file.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Returns the roots of the machine, or of `SSL_CERT_FILE`; they are read once.
pub(super) fn system_roots() -> Result<RootCertStore, InvalidTls> {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        store
    });
    if roots.is_empty() { Err(InvalidTls::NoSystemRoots) } else { Ok(roots.clone()) }
}

pub(super) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, InvalidTls> {
    let text = read(file)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() { Err(unreadable(file, &"it has no certificate")) } else { Ok(found) }
}

/// Reads a private key. As libpq requires, only its owner may read it, or its group if root owns
/// it.
pub(super) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, InvalidTls> {
    let there = fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    let others = if there.uid() == 0 { 0o037 } else { 0o077 };
    if there.mode() & others != 0 {
        return Err(InvalidTls::Open(file.display().to_string()));
    }
    PrivateKeyDer::from_pem_slice(&read(file)?).map_err(|error| unreadable(file, &error))
}

fn read(file: &Path) -> Result<Vec<u8>, InvalidTls> {
    let mut text = vec![];
    let opened = fs::File::open(file).map_err(|error| unreadable(file, &error))?;
    opened.take(MAX_PEM_BYTES).read_to_end(&mut text).map_err(|error| unreadable(file, &error))?;
    Ok(text)
}

pub(super) fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> InvalidTls {
    InvalidTls::File(file.display().to_string(), error.to_string())
}
