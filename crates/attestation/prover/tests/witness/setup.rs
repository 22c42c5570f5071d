//! A platform's server, and an attestor that allows it.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use attestation::{descriptor::Descriptor, protocol::OpenRequest};
use attestor::{
    AllowedClients, AttestorLimits, AttestorServer, Settings, list_keys, new_key, now, revoke_key,
};
use domain::{
    api_key::Environment,
    egress::Egress,
    fairness::Tenant,
    id::{SessionId, TeamId},
    secret::Secret,
    workflow::{Attest, AttestMode, Definition},
};
use ports::attestor::AttestationOrder;
use prover::{AttestorAddress, Prover, descriptor};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    CipherSuite, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::PrivateKeyDer,
    version::TLS13,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    programs::{hanging, workers},
    secrets::Secrets,
};

/// The server's name, and its address for tests without a fixed address, so that no DNS lookup is
/// needed.
const HOST: &str = "platform.localhost";
const PRIVATE: &str = "127.0.0.1";
pub(crate) const COOKIE: &str = "sid=0123456789abcdef";

/// How the server ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    CloseNotify,
    /// Closes TCP without a TLS `close_notify`.
    Drop,
    /// Keeps the connection open after the response.
    Stay,
}

/// Options of a setup.
pub(crate) struct SetupOptions {
    pub(crate) modes: Vec<AttestMode>,
    /// Whether the server supports ChaCha20-Poly1305.
    pub(crate) chacha: bool,
    pub(crate) response_bytes: Vec<u8>,
    pub(crate) ending: Ending,
    pub(crate) bounds: AttestorLimits,
    /// Whether the attestor has a fixed address for the server.
    pub(crate) has_fixed_address: bool,
    /// Tokens of the clients; every client is served if there is none.
    pub(crate) tokens: Vec<&'static str>,
    /// Whether examinations never finish.
    pub(crate) hangs: bool,
    /// The claims, by field.
    pub(crate) fields: Vec<(&'static str, &'static str)>,
}

pub(crate) struct Setup {
    pub(crate) address: AttestorAddress,
    pub(crate) platform: SocketAddr,
    /// The secrets of all connections to the server, from its key log.
    pub(crate) secrets: Secrets,
    root: Vec<u8>,
    definition: Definition,
    folder: TempDir,
    _stop: DropGuard,
}

/// Serializes proofs, which take gigabytes each.
pub(crate) async fn proof_lock() -> tokio::sync::MutexGuard<'static, ()> {
    static PROOFS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    PROOFS.lock().await
}

pub(crate) fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Setup {
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut SetupOptions)) -> Self {
        let mut setting = SetupOptions {
            modes: vec![AttestMode::ZktlsRequest],
            chacha: true,
            response_bytes: response(200, r#"{"id":"acct-1"}"#),
            ending: Ending::CloseNotify,
            bounds: AttestorLimits {
                examination_timeout: Duration::from_secs(180),
                ..AttestorLimits::default()
            },
            has_fixed_address: true,
            tokens: vec![],
            hangs: false,
            fields: vec![("accountId", "/id")],
        };
        change(&mut setting);
        let secrets = Secrets::default();
        let (platform, root) =
            serve(setting.chacha, setting.response_bytes, setting.ending, secrets.clone()).await;
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        new_key(&keys, now(), 1).unwrap();
        let host = if setting.has_fixed_address { HOST } else { PRIVATE };
        let definition = definition(setting.modes, host, &setting.fields);
        let tokens: Vec<_> = setting.tokens.iter().map(|token| hash(token.as_bytes())).collect();
        let clients = if tokens.is_empty() {
            AllowedClients::Everyone
        } else {
            AllowedClients::Tokens(tokens)
        };
        let program = if setting.hangs { hanging(folder.path()) } else { workers() };
        let attestor = AttestorServer::new(Settings {
            name: "test".into(),
            keys,
            log: folder.path().join("log"),
            log_origin: "log.test/attestations".into(),
            descriptors: vec![descriptor(&definition).unwrap()],
            roots: vec![root.clone()],
            hosts: if setting.has_fixed_address { vec![(HOST.into(), platform)] } else { vec![] },
            egress: Egress::default(),
            clients,
            limits: setting.bounds,
            program,
        });
        let attestor = attestor.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let keys = attestor.public_keys().unwrap();
        let address =
            AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys };
        let stop = CancellationToken::new();
        tokio::spawn(attestor.serve(listener, stop.clone()));
        let stop = stop.drop_guard();
        Self { address, platform, secrets, root, definition, folder, _stop: stop }
    }

    /// Returns the root certificate of the server's chain, DER.
    pub(crate) fn root(&self) -> &[u8] {
        &self.root
    }

    /// Revokes the attestor's only key.
    pub(crate) fn revoke(&self) {
        let keys = self.folder.path().join("keys");
        let id = list_keys(&keys, now()).unwrap().remove(0).key_id;
        revoke_key(&keys, &id, now(), None, now()).unwrap();
    }

    /// Returns the folder of the attestor's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub(crate) fn prover(&self) -> Prover {
        self.prover_to(self.address.clone())
    }

    pub(crate) fn prover_to(&self, address: AttestorAddress) -> Prover {
        Prover::new(address, vec![self.root.clone()], workers(), 1).unwrap()
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        descriptor(&self.definition).unwrap()
    }

    pub(crate) fn open(&self, session: [u8; 32]) -> OpenRequest {
        let (descriptor, token) = (self.descriptor().sha256(), String::new());
        let (partner, challenge) = ([0; 32], vec![]);
        OpenRequest { descriptor, mode: 1, session, partner, challenge, token }
    }

    pub(crate) fn order(&self) -> AttestationOrder {
        AttestationOrder {
            session: SessionId::from_uuid(uuid::Uuid::new_v4()),
            url: self.definition.requests["me"].url.clone(),
            plan: self.definition.attest.clone().unwrap(),
            tenant: Tenant {
                team: TeamId::from_uuid(uuid::Uuid::new_v4()),
                environment: Environment::Production,
            },
            challenge: vec![],
            cookies: Secret::new(COOKIE.into()),
            user_agent: "Browser/1".into(),
        }
    }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(bytes).into()
}

fn definition(modes: Vec<AttestMode>, host: &str, fields: &[(&str, &str)]) -> Definition {
    let mut definition = testkit::sample::definition("sample", "1.0.0");
    definition.requests.insert(
        "me".into(),
        domain::workflow::Request {
            url: format!("https://{host}/api/me"),
            expect_status: 200,
            max_bytes: 1000,
            method: domain::workflow::Method::Get,
            headers: BTreeMap::new(),
            csrf: None,
            body: None,
        },
    );
    definition.attest = Some(Attest {
        request: "me".into(),
        platform: 7,
        version: 1,
        headers: BTreeMap::from([("accept".into(), "application/json".into())]),
        modes,
        fields: fields.iter().map(|(name, at)| ((*name).into(), (*at).into())).collect(),
    });
    definition
}

/// Starts a server that sends the same response to each request. Returns its address and its root
/// certificate.
pub(crate) async fn serve(
    chacha: bool,
    answer: Vec<u8>,
    ending: Ending,
    secrets: Secrets,
) -> (SocketAddr, Vec<u8>) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([HOST.to_owned()]).unwrap().signed_by(&key, &root).unwrap();
    let usual = ring::default_provider();
    let suites =
        usual.cipher_suites.iter().copied().filter(|suite| {
            chacha == (suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256)
        });
    let provider = CryptoProvider { cipher_suites: suites.collect(), ..usual };
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.key_log = Arc::new(secrets);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await.ok()?;
                let mut asked = vec![];
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(stream.read_u8().await.ok()?);
                }
                stream.write_all(&answer).await.ok()?;
                stream.flush().await.ok()?;
                match ending {
                    Ending::CloseNotify => stream.shutdown().await.ok(),
                    Ending::Drop => Some(()),
                    Ending::Stay => std::future::pending().await,
                }
            });
        }
    });
    (address, root.der().to_vec())
}
