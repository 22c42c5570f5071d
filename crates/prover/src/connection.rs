//! Our end of the TLS connection to a platform's server, whose handshake secret we keep: the only
//! thing that rustls does not tell, and all that the rest follows from.

use std::{
    cell::RefCell,
    io::{Read as _, Write as _},
    sync::Arc,
};

use attestation::{
    Suite,
    descriptor::{Descriptor, Mode},
    full_reveal::Capture,
    http::response::{self, BadResponse},
};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, NamedGroup, RootCertStore,
    client::Resumption,
    crypto::{ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring},
    pki_types::ServerName,
    version::TLS13,
};

/// A connection with all that passed on it.
pub(crate) struct Connection {
    tls: ClientConnection,
    client: Vec<u8>,
    server: Vec<u8>,
    /// How much of `client` was passed on.
    passed: usize,
    /// What the server answered, opened.
    answered: Vec<u8>,
    content_type: String,
    mode: Mode,
    shared: Option<Vec<u8>>,
    asked: Option<Vec<u8>>,
    /// What came of the response, once it is complete or can never be.
    outcome: Option<Result<(), BadResponse>>,
}

impl Connection {
    /// To a descriptor's host, for one request.
    pub(crate) fn new(
        descriptor: &Descriptor,
        roots: Arc<RootCertStore>,
        mode: Mode,
        request: Vec<u8>,
    ) -> Result<Self, rustls::Error> {
        let usual = ring::default_provider();
        let suites = usual.cipher_suites.iter().copied().filter(|suite| match mode {
            Mode::ZktlsRequest | Mode::ZktlsFull => {
                suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
            }
            Mode::FullReveal => suite.tls13().is_some(),
        });
        let provider =
            CryptoProvider { cipher_suites: suites.collect(), kx_groups: vec![&Kept], ..usual };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(descriptor.host.clone())
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let tls = ClientConnection::new(Arc::new(config), name)?;
        Ok(Self {
            tls,
            client: vec![],
            server: vec![],
            passed: 0,
            answered: vec![],
            content_type: descriptor.content_type.clone(),
            mode,
            shared: None,
            asked: Some(request),
            outcome: None,
        })
    }

    /// What is to be passed on to the server now.
    pub(crate) fn outgoing(&mut self) -> Result<Vec<u8>, rustls::Error> {
        // Until it is known who the server is, nothing is asked.
        if !self.tls.is_handshaking()
            && let Some(request) = self.asked.take()
        {
            self.tls.writer().write_all(&request).map_err(|error| io(&error))?;
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.client).map_err(|error| io(&error))?;
        }
        let rest = self.client.get(self.passed..).unwrap_or_default().to_vec();
        self.passed = self.client.len();
        Ok(rest)
    }

    /// Takes what the server said; nothing means that it has closed its connection, which many do
    /// without `close_notify`.
    pub(crate) fn heard(&mut self, bytes: &[u8]) -> Result<(), rustls::Error> {
        self.server.extend(bytes);
        let (mut rest, mut closed) = (bytes, bytes.is_empty());
        while !rest.is_empty() {
            // After close_notify nothing is taken any more.
            if self.tls.read_tls(&mut rest).map_err(|error| io(&error))? == 0 {
                let why = "something comes after the server's close_notify";
                return Err(rustls::Error::General(why.into()));
            }
            let state = self.tls.process_new_packets()?;
            if let Some(shared) = SHARED.take() {
                self.shared = Some(shared);
            }
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut plain).map_err(|error| io(&error))?;
            self.answered.extend(&plain);
            closed |= state.peer_has_closed();
        }
        if self.tls.is_handshaking() {
            return if closed {
                Err(rustls::Error::General("the server closed during the handshake".into()))
            } else {
                Ok(())
            };
        }
        let was_over = self.is_over();
        self.outcome = match response::read(&self.answered, &self.content_type, self.mode) {
            Err(BadResponse::CutOff) if !closed => None,
            read => Some(read.map(drop)),
        };
        if self.is_over() && !was_over {
            self.tls.send_close_notify();
        }
        Ok(())
    }

    /// Whether the response is complete, or can never be: there is nothing to wait for.
    pub(crate) const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// Whether the response is one that a witness may see and would take.
    pub(crate) fn outcome(&self) -> Result<(), BadResponse> {
        self.outcome.clone().unwrap_or(Err(BadResponse::CutOff))
    }

    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    /// The handshake secret; none before the handshake.
    pub(crate) fn secret(&self) -> Option<Vec<u8>> {
        let suite = Suite::of(self.tls.negotiated_cipher_suite()?.suite().into())?;
        Some(suite.handshake_secret(self.shared.as_ref()?))
    }
}

fn io(error: &std::io::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

thread_local! {
    /// What the last exchange on this thread came to: a connection is driven on one at a time, and
    /// takes it at once.
    static SHARED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

const GROUP: &dyn SupportedKxGroup = ring::kx_group::X25519;

/// X25519, with what both shares come to kept.
#[derive(Debug)]
struct Kept;

struct KeptExchange(Box<dyn ActiveKeyExchange>);

impl SupportedKxGroup for Kept {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(KeptExchange(GROUP.start()?)))
    }

    fn name(&self) -> NamedGroup {
        GROUP.name()
    }
}

impl ActiveKeyExchange for KeptExchange {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let shared = self.0.complete(share)?;
        SHARED.set(Some(shared.secret_bytes().to_vec()));
        Ok(shared)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}
