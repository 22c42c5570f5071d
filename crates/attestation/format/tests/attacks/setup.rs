//! A connection between a real client and a real server of rustls, recorded as an attestor would,
//! for modification with its secrets.

use std::{
    io::{Read as _, Write as _},
    sync::{Arc, Mutex},
};

use attestation::{
    CertificateTrust, ExaminationError, Suite,
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    full_reveal::{Capture, Findings, examine},
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::{
    ClientConfig, ClientConnection, NamedGroup, ServerConfig, ServerConnection,
    client::Resumption,
    crypto::{ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, TrustAnchor, UnixTime},
};

use crate::any_certificate::AnyCertificate;

pub(crate) const HOST: &str = "platform.test";
pub(crate) const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 52\r\n\r\n{\"user\":{\"id\":\"acct-829137\",\"verified\":true},\"n\":42}";

pub(crate) fn request() -> Vec<u8> {
    request_with("Accept: application/json\r\nCookie: sid=0123456789abcdef\r\n")
}

pub(crate) fn request_with(headers: &str) -> Vec<u8> {
    format!(
        "GET /api/v1/me HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\
         Accept-Encoding: identity\r\n{headers}\r\n"
    )
    .into_bytes()
}

pub(crate) fn descriptor() -> Descriptor {
    let claim = |field: &str, pointer: &str| ClaimDescriptor {
        field: field.into(),
        pointer: pointer.into(),
    };
    Descriptor {
        platform: 1,
        version: 3,
        host: HOST.into(),
        target: "/api/v1/me".into(),
        headers: vec!["accept".into(), "cookie".into(), "user-agent".into()],
        hidden: vec!["cookie".into()],
        values: std::collections::BTreeMap::new(),
        content_type: "application/json".into(),
        modes: vec![RevealMode::FullReveal],
        claims: vec![claim("user_id", "/user/id"), claim("verified", "/user/verified")],
    }
}

/// The setup of a connection.
pub(crate) struct Setup {
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
    pub(crate) suite: u16,
    pub(crate) certificate: Certificate,
}

impl Default for Setup {
    fn default() -> Self {
        let (request, response) = (request(), RESPONSE.to_vec());
        Self { request, response, suite: 0x1303, certificate: Certificate::default() }
    }
}

/// The server's certificate.
pub(crate) struct Certificate {
    pub(crate) name: String,
    pub(crate) usage: ExtendedKeyUsagePurpose,
    /// Start and end of its validity, in years from now.
    pub(crate) years: (i32, i32),
    pub(crate) self_signed: bool,
    /// Whether the intermediate authority is missing in the chain.
    pub(crate) gap: bool,
}

impl Default for Certificate {
    fn default() -> Self {
        let usage = ExtendedKeyUsagePurpose::ServerAuth;
        Self { name: HOST.into(), usage, years: (-1, 1), self_signed: false, gap: false }
    }
}

/// A closed connection.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Vec<u8>,
    pub(crate) server: Vec<u8>,
    pub(crate) secret: Vec<u8>,
    /// The root certificate of the server's chain, DER.
    pub(crate) root: Vec<u8>,
    pub(crate) roots: Vec<TrustAnchor<'static>>,
}

impl Session {
    pub(crate) fn examine(&self) -> Result<Findings, ExaminationError> {
        self.examine_as(&descriptor())
    }

    pub(crate) fn examine_as(&self, descriptor: &Descriptor) -> Result<Findings, ExaminationError> {
        let capture = Capture { client: &self.client, server: &self.server };
        let trust = CertificateTrust { roots: &self.roots, now: UnixTime::now() };
        examine(capture, &self.secret, descriptor, &trust)
    }
}

/// The library keeps key exchange groups permanently; they are stored here so that leak detectors
/// find them.
static GROUPS: Mutex<Vec<&Kept>> = Mutex::new(vec![]);

impl Setup {
    pub(crate) fn play(&self) -> Session {
        let (root, chain, key) = self.certificate.issue();
        let provider = |kx| CryptoProvider {
            cipher_suites: ring::ALL_CIPHER_SUITES
                .iter()
                .copied()
                .filter(|suite| u16::from(suite.suite()) == self.suite)
                .collect(),
            kx_groups: vec![kx],
            ..ring::default_provider()
        };
        let shared = Arc::new(Mutex::new(vec![]));
        let kept: &'static Kept = Box::leak(Box::new(Kept(shared.clone())));
        GROUPS.lock().unwrap().push(kept);
        let mut client = ClientConfig::builder_with_provider(Arc::new(provider(kept)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(Arc::new(provider(GROUP)))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        let host = ServerName::try_from(HOST).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), host).unwrap();
        let mut server = ServerConnection::new(Arc::new(server)).unwrap();
        let (from_client, from_server) = self.exchange(&mut client, &mut server);
        let suite = match self.suite {
            0x1301 => Suite::Aes128GcmSha256,
            0x1302 => Suite::Aes256GcmSha384,
            _ => Suite::ChaCha20Poly1305Sha256,
        };
        let secret = suite.handshake_secret(&shared.lock().unwrap());
        let roots = vec![webpki::anchor_from_trusted_cert(&root).unwrap().to_owned()];
        let root = root.to_vec();
        Session { client: from_client, server: from_server, secret, root, roots }
    }

    fn exchange(
        &self,
        client: &mut ClientConnection,
        server: &mut ServerConnection,
    ) -> (Vec<u8>, Vec<u8>) {
        let (mut from_client, mut from_server) = (vec![], vec![]);
        server.set_buffer_limit(None);
        client.writer().write_all(&self.request).unwrap();
        let mut answered = false;
        let mut heard = vec![];
        for _ in 0..10 {
            let mut bytes = vec![];
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            from_client.extend(&bytes);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                server.process_new_packets().unwrap();
            }
            let _ = server.reader().read_to_end(&mut heard);
            if heard.len() == self.request.len() && !answered {
                answered = true;
                server.writer().write_all(&self.response).unwrap();
                server.send_close_notify();
            }
            let mut bytes = vec![];
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            from_server.extend(&bytes);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                client.read_tls(&mut rest).unwrap();
                client.process_new_packets().unwrap();
                let _ = client.reader().read_to_end(&mut vec![]);
            }
            if answered {
                client.send_close_notify();
            }
        }
        (from_client, from_server)
    }
}

impl Certificate {
    fn issue(&self) -> (CertificateDer<'static>, Vec<CertificateDer<'static>>, KeyPair) {
        let authority = |key: &KeyPair| {
            let mut params = CertificateParams::new(vec![]).unwrap();
            // Distinct names, so that none is mistaken for another.
            let name = format!("{:?}", &key.public_key_raw()[1..9]);
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params
        };
        let (root, between) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let root = CertifiedIssuer::self_signed(authority(&root), root).unwrap();
        let between = CertifiedIssuer::signed_by(authority(&between), between, &root).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![self.name.clone()]).unwrap();
        params.extended_key_usages = vec![self.usage.clone()];
        let year = 2026;
        params.not_before = rcgen::date_time_ymd(year + self.years.0, 1, 1);
        params.not_after = rcgen::date_time_ymd(year + self.years.1, 12, 31);
        let leaf = if self.self_signed {
            params.self_signed(&key).unwrap()
        } else {
            params.signed_by(&key, &between).unwrap()
        };
        let mut chain = vec![leaf.der().clone()];
        if !self.gap && !self.self_signed {
            chain.push(between.der().clone());
        }
        (root.der().clone(), chain, key)
    }
}

const GROUP: &dyn SupportedKxGroup = ring::kx_group::X25519;

/// A group that keeps the shared secret, from which the handshake secret is derived.
#[derive(Debug)]
struct Kept(Arc<Mutex<Vec<u8>>>);

struct KeptExchange(Box<dyn ActiveKeyExchange>, Arc<Mutex<Vec<u8>>>);

impl SupportedKxGroup for Kept {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(KeptExchange(GROUP.start()?, self.0.clone())))
    }

    fn name(&self) -> NamedGroup {
        GROUP.name()
    }
}

impl ActiveKeyExchange for KeptExchange {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let shared = self.0.complete(share)?;
        *self.1.lock().unwrap() = shared.secret_bytes().to_vec();
        Ok(shared)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}
