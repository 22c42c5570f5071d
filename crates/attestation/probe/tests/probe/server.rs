//! TLS servers on the loopback interface, each restricted in one way.

use std::{net::SocketAddr, process::Command, sync::Arc, time::Duration};

use domain::secret::Secret;
use probe::{Observations, ProbeError, ProbeReport, ProbeTarget, ServerProbe};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    CipherSuite, NamedGroup, ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

pub(crate) const HOST: &str = "platform.test";
pub(crate) const URL: &str = "https://platform.test/api/me";

/// How the server ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    CloseNotify,
    /// Closes TCP without a TLS `close_notify`.
    Drop,
    Stay,
    /// Repeats the response until the client is gone.
    Repeat,
}

/// Options of a server.
pub(crate) struct ServerOptions {
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    pub(crate) suites: Option<Vec<CipherSuite>>,
    pub(crate) groups: Option<Vec<NamedGroup>>,
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) is_expired: bool,
    pub(crate) asks_for_certificate: bool,
    pub(crate) response: Vec<u8>,
    pub(crate) ending: Ending,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            versions: vec![&TLS12, &TLS13],
            suites: None,
            groups: None,
            protocols: vec!["http/1.1"],
            name: HOST,
            is_expired: false,
            asks_for_certificate: false,
            response: response("200 OK", "", r#"{"id":"acct-1"}"#),
            ending: Ending::CloseNotify,
        }
    }
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) root: Vec<u8>,
}

/// A chain of a root and a certificate, as PEM for other programs too.
pub(crate) struct Chain {
    pub(crate) root: Vec<u8>,
    leaf: rcgen::Certificate,
    key: KeyPair,
}

impl Chain {
    pub(crate) fn new(name: &str, is_expired: bool) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if is_expired {
            params.not_after = date_time_ymd(2001, 2, 3);
        }
        let leaf = params.signed_by(&key, &root).unwrap();
        Self { root: root.der().to_vec(), leaf, key }
    }

    pub(crate) fn pem(&self) -> [String; 2] {
        [self.leaf.pem(), self.key.serialize_pem()]
    }
}

/// Returns a response of JSON with a `Content-Length`, and with these headers.
pub(crate) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         {headers}\r\n{body}"
    )
    .into_bytes()
}

/// Starts a server with these changes to a server whose answers can be attested.
pub(crate) async fn serve(change: impl FnOnce(&mut ServerOptions)) -> TestServer {
    let mut options = ServerOptions::default();
    change(&mut options);
    let chain = Chain::new(options.name, options.is_expired);
    let acceptor = TlsAcceptor::from(Arc::new(config(&options, &chain)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (response, ending) = (Arc::new(options.response), options.ending);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, response) = (acceptor.clone(), response.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.ok()?;
                let mut asked = vec![];
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(stream.read_u8().await.ok()?);
                }
                stream.write_all(&response).await.ok()?;
                if ending == Ending::Repeat {
                    loop {
                        stream.write_all(&response).await.ok()?;
                    }
                }
                stream.flush().await.ok()?;
                match ending {
                    Ending::CloseNotify => stream.shutdown().await.ok(),
                    Ending::Drop | Ending::Repeat => Some(()),
                    Ending::Stay => std::future::pending().await,
                }
            });
        }
    });
    TestServer { address, root: chain.root }
}

fn config(options: &ServerOptions, chain: &Chain) -> ServerConfig {
    let mut provider = ring::default_provider();
    if let Some(suites) = &options.suites {
        provider.cipher_suites.retain(|suite| suites.contains(&suite.suite()));
    }
    if let Some(groups) = &options.groups {
        provider.kx_groups.retain(|group| groups.contains(&group.name()));
    }
    let provider: Arc<CryptoProvider> = Arc::new(provider);
    let builder = ServerConfig::builder_with_provider(provider.clone());
    let builder = builder.with_protocol_versions(&options.versions).unwrap();
    let builder = if options.asks_for_certificate {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(chain.root.clone().into()).unwrap();
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(chain.key.serialize_der()));
    let mut config = builder.with_single_cert(vec![chain.leaf.der().clone()], key).unwrap();
    config.alpn_protocols = options.protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
    config
}

impl TestServer {
    pub(crate) async fn probe(&self) -> Observations {
        self.probe_with(&[]).await
    }

    pub(crate) async fn probe_with(&self, headers: &[&str]) -> Observations {
        run(URL, headers, std::slice::from_ref(&self.root), self.address).await.unwrap()
    }

    pub(crate) async fn report(&self) -> ProbeReport {
        ProbeReport::new(self.probe().await)
    }
}

pub(crate) async fn run(
    url: &str,
    headers: &[&str],
    roots: &[Vec<u8>],
    address: SocketAddr,
) -> Result<Observations, ProbeError> {
    let headers: Vec<_> = headers.iter().map(|it| Secret::new((*it).to_owned())).collect();
    let target = ProbeTarget::parse(url, &headers).unwrap();
    ServerProbe::new(target, roots, Some(address.to_string()))?.run().await
}

/// An `openssl s_server`, which ends with the value.
pub(crate) struct OpensslServer {
    child: std::process::Child,
    pub(crate) address: SocketAddr,
    pub(crate) root: Vec<u8>,
    _folder: tempfile::TempDir,
}

impl OpensslServer {
    /// Starts a server with these arguments; `None` where the program is not installed.
    pub(crate) async fn start(arguments: &[&str]) -> Option<Self> {
        Command::new("openssl").arg("version").output().ok()?;
        let chain = Chain::new(HOST, false);
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|it| folder.path().join(it));
        for (file, text) in [&certificate, &key].into_iter().zip(chain.pem()) {
            std::fs::write(file, text).unwrap();
        }
        std::fs::write(folder.path().join("me.json"), "{}").unwrap();
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-WWW", "-accept", &address.to_string()])
            .arg("-cert")
            .arg(&certificate)
            .arg("-key")
            .arg(&key)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, address, root: chain.root, _folder: folder };
        for _ in 0..100 {
            if tokio::net::TcpStream::connect(address).await.is_ok() {
                return Some(server);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("openssl s_server did not start");
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
