//! The certificate of the site, under a root of its own that nobody else has to trust. The root's key
//! is not stored: it signs this certificate only.

use std::{fs, io, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    version::TLS13,
};

use super::HOST;

const ROOT: &str = "root.pem";
const LEAF: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// The TLS configuration of the site, and the root of its certificate.
pub struct SiteCertificate {
    pub(super) config: ServerConfig,
    /// The root certificate, DER.
    pub root: Vec<u8>,
}

impl SiteCertificate {
    /// Reads the certificate in a folder, or creates it there.
    ///
    /// # Errors
    /// The folder cannot be read or written, or contains something else.
    pub fn open(folder: &Path) -> io::Result<Self> {
        if !folder.join(ROOT).exists() {
            create(folder)?;
        }
        let certificate = |name| CertificateDer::from_pem_file(folder.join(name)).map_err(other);
        let (root, leaf) = (certificate(ROOT)?, certificate(LEAF)?);
        let key = PrivateKeyDer::from_pem_file(folder.join(KEY)).map_err(other)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![leaf], key))
            .map_err(other)?;
        Ok(Self { config, root: root.to_vec() })
    }

    /// Returns the root certificate in a folder, in DER; `None` if there is none.
    #[must_use]
    pub fn existing_root(folder: &Path) -> Option<Vec<u8>> {
        folder.exists().then(|| Self::open(folder))?.ok().map(|certificate| certificate.root)
    }
}

fn create(folder: &Path) -> io::Result<()> {
    let mut params = CertificateParams::new(vec![]).map_err(other)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "Avouch sandbox");
    let generated = || KeyPair::generate().map_err(other);
    let root = CertifiedIssuer::self_signed(params, generated()?).map_err(other)?;
    let key = generated()?;
    let mut leaf = CertificateParams::new([HOST.to_owned()]).map_err(other)?;
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.use_authority_key_identifier_extension = true;
    let leaf = leaf.signed_by(&key, &root).map_err(other)?;
    fs::create_dir_all(folder)?;
    let write = |name: &str, text: String| {
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        file.open(folder.join(name))?.write_all(text.as_bytes())
    };
    write(KEY, key.serialize_pem())?;
    write(LEAF, leaf.pem())?;
    // The last one: if it exists, the other files are complete.
    write(ROOT, root.pem())
}

fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}
