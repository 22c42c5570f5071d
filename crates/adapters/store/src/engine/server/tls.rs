//! TLS to PostgreSQL, configured by the parameters of libpq: `sslmode`, `sslrootcert`, `sslcert`,
//! `sslkey`.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, Error, RootCertStore,
    client::WebPkiServerVerifier,
    crypto::{CryptoProvider, ring},
};
use tokio_postgres::{
    Config,
    config::{Host, SslMode as Asked},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    pem::{certificates, private_key, system_roots, unreadable},
    verifier::Verifier,
};

/// The security of a connection, as in libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// No TLS, unless the server requires it.
    Allow,
    /// TLS, unless the server does not support it or the handshake fails.
    Prefer,
    /// TLS; the server's certificate is not verified, unless `sslrootcert` is given.
    Require,
    /// TLS, with a certificate that a root in `sslrootcert` issued for any host.
    VerifyCa,
    /// TLS, with a certificate that a trusted root issued for this host.
    VerifyFull,
}

const MODES: [(&str, SslMode); 6] = [
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

/// The ALPN protocol, which libpq sends in every mode since version 17.
const ALPN: &[u8] = b"postgresql";

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTls {
    #[error("sslmode must be disable, allow, prefer, require, verify-ca or verify-full")]
    Mode,
    #[error("ssl must be true")]
    Flag,
    #[error("sslmode=verify-ca needs sslrootcert=FILE")]
    NoRoots,
    #[error("sslrootcert=system needs sslmode=verify-full: anybody can get a certificate there")]
    WeakSystem,
    #[error("sslcert and sslkey need each other")]
    HalfIdentity,
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    #[error("{0} cannot be read: {1}")]
    File(String, String),
    #[error("{0} may be read by others: chmod 600 (or 640 where root owns it)")]
    Open(String),
    #[error("the system has no trusted certificates")]
    NoSystemRoots,
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] Error),
}

/// The TLS parameters of a URL.
#[derive(Default)]
pub(super) struct TlsParameters {
    mode: Option<SslMode>,
    roots: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl TlsParameters {
    /// Takes a parameter; returns whether it is one of these.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool, InvalidTls> {
        match name {
            "sslmode" => {
                let known = MODES.iter().find(|(name, _)| *name == value);
                self.mode = Some(known.ok_or(InvalidTls::Mode)?.1);
            }
            // The form of JDBC, which libpq accepts too.
            "ssl" if value == "true" => self.mode = Some(SslMode::Require),
            "ssl" => return Err(InvalidTls::Flag),
            "sslrootcert" => self.roots = Some(value.to_owned()),
            "sslcert" => self.certificate = Some(value.to_owned()),
            "sslkey" => self.key = Some(value.to_owned()),
            "sslpassword" => return Err(InvalidTls::Unsupported("sslpassword")),
            "sslcrl" => return Err(InvalidTls::Unsupported("sslcrl")),
            "sslcrldir" => return Err(InvalidTls::Unsupported("sslcrldir")),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Clone)]
enum Roots {
    System,
    File(PathBuf),
}

/// How much of the server's certificate is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verification {
    Nothing,
    Issuer,
    IssuerAndHost,
}

/// The TLS configuration of connections.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    mode: SslMode,
    roots: Option<Roots>,
    /// The client certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Validates the parameters and the files.
    pub(super) fn new(given: TlsParameters, config: &Config) -> Result<Self, InvalidTls> {
        let roots = given.roots.filter(|roots| !roots.is_empty());
        let roots = roots.map(|roots| match roots.as_str() {
            "system" => Roots::System,
            path => Roots::File(path.into()),
        });
        let mode = match (given.mode, &roots) {
            (Some(mode), Some(Roots::System)) if mode != SslMode::VerifyFull => {
                return Err(InvalidTls::WeakSystem);
            }
            (Some(SslMode::VerifyCa), None) => return Err(InvalidTls::NoRoots),
            (Some(mode), _) => mode,
            // With a file of roots the server is verified by default.
            (None, Some(_)) => SslMode::VerifyFull,
            (None, None) => SslMode::Prefer,
        };
        let identity = match (given.certificate, given.key) {
            (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(InvalidTls::HalfIdentity),
        };
        // There is no TLS over a Unix socket, and libpq requests none.
        let sockets = config.get_hosts();
        let local = !sockets.is_empty() && sockets.iter().all(|host| matches!(host, Host::Unix(_)));
        let mode = if local { SslMode::Disable } else { mode };
        let tls = Self { mode, roots, identity };
        tls.connector()?;
        Ok(tls)
    }

    /// Returns the attempts in their order.
    pub(super) fn attempts(&self) -> &'static [Asked] {
        match self.mode {
            SslMode::Disable => &[Asked::Disable],
            SslMode::Allow => &[Asked::Disable, Asked::Require],
            SslMode::Prefer => &[Asked::Prefer, Asked::Disable],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Asked::Require],
        }
    }

    /// Returns what an attacker on the network path could do, if anything.
    pub(super) fn weakness(&self) -> Option<&'static str> {
        match (self.mode, self.verification()) {
            (SslMode::Disable | SslMode::Allow | SslMode::Prefer, _) => {
                Some("connections may be in plaintext")
            }
            (_, Verification::Nothing) => Some("the server's certificate is not verified"),
            (_, Verification::Issuer | Verification::IssuerAndHost) => None,
        }
    }

    fn verification(&self) -> Verification {
        match (self.mode, &self.roots) {
            (SslMode::VerifyFull, _) => Verification::IssuerAndHost,
            // As in libpq, `require` verifies the issuer if there is a file of roots.
            (SslMode::VerifyCa, _) | (_, Some(_)) => Verification::Issuer,
            (_, None) => Verification::Nothing,
        }
    }

    /// Reads the files.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, InvalidTls> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            Some((certificate, key)) => {
                builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<Verifier>, InvalidTls> {
        let verification = self.verification();
        let unverified = self.mode == SslMode::Disable || verification == Verification::Nothing;
        let webpki = if unverified {
            None
        } else {
            let roots = Arc::new(self.root_store()?);
            let built = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            Some(built.build().map_err(|error| Error::General(error.to_string()))?)
        };
        let host = verification == Verification::IssuerAndHost;
        Ok(Arc::new(Verifier { webpki, host, provider: provider.clone() }))
    }

    fn root_store(&self) -> Result<RootCertStore, InvalidTls> {
        let Some(Roots::File(file)) = &self.roots else { return system_roots() };
        let mut store = RootCertStore::empty();
        for root in certificates(file)? {
            store.add(root).map_err(|error| unreadable(file, &error))?;
        }
        Ok(store)
    }
}
