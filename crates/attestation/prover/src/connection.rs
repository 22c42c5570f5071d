//! The client side of the TLS connection to a platform's server. It keeps the handshake secret, the
//! only value that rustls does not export and from which all others are derived.

use std::{
    cell::RefCell,
    io::{Read as _, Write as _},
    sync::Arc,
};

use attestation::{
    Suite,
    descriptor::{Descriptor, RevealMode},
    full_reveal::Capture,
    http::response::{self, ResponseError},
};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, NamedGroup, RootCertStore,
    client::Resumption,
    crypto::{ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring},
    pki_types::ServerName,
    version::TLS13,
};

/// The only protocol that is offered (RFC 7301), which the server has to select.
pub const ALPN_PROTOCOL: &[u8] = b"http/1.1";

/// A connection with all bytes of both directions.
pub(crate) struct PlatformConnection {
    tls: ClientConnection,
    client: Vec<u8>,
    server: Vec<u8>,
    /// Number of bytes of `client` that were returned for sending.
    sent: usize,
    /// The server's decrypted application data.
    plaintext: Vec<u8>,
    content_type: String,
    mode: RevealMode,
    shared_secret: Option<Vec<u8>>,
    pending_request: Option<Vec<u8>>,
    /// Result for the response, once it is complete or can never be complete.
    outcome: Option<Result<(), ResponseError>>,
}

impl PlatformConnection {
    /// Creates a connection to a descriptor's host for one request.
    pub(crate) fn new(
        descriptor: &Descriptor,
        roots: Arc<RootCertStore>,
        mode: RevealMode,
        request: Vec<u8>,
    ) -> Result<Self, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(offered_parameters(mode)))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(descriptor.host.clone())
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        let tls = ClientConnection::new(Arc::new(config), name)?;
        Ok(Self {
            tls,
            client: vec![],
            server: vec![],
            sent: 0,
            plaintext: vec![],
            content_type: descriptor.content_type.clone(),
            mode,
            shared_secret: None,
            pending_request: Some(request),
            outcome: None,
        })
    }

    /// Returns the bytes to be sent to the server now.
    pub(crate) fn outgoing(&mut self) -> Result<Vec<u8>, rustls::Error> {
        // Nothing is requested before the server is authenticated.
        if !self.tls.is_handshaking()
            && let Some(request) = self.pending_request.take()
        {
            self.tls.writer().write_all(&request).map_err(|error| io(&error))?;
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.client).map_err(|error| io(&error))?;
        }
        let rest = self.client.get(self.sent..).unwrap_or_default().to_vec();
        self.sent = self.client.len();
        Ok(rest)
    }

    /// Processes bytes of the server. An empty slice means that the server has closed the
    /// connection, which many servers do without `close_notify`.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), rustls::Error> {
        self.server.extend(bytes);
        let (mut rest, mut closed) = (bytes, bytes.is_empty());
        while !rest.is_empty() {
            // rustls accepts no bytes after close_notify.
            if self.tls.read_tls(&mut rest).map_err(|error| io(&error))? == 0 {
                let why = "the server sent data after its close_notify";
                return Err(rustls::Error::General(why.into()));
            }
            let state = self.tls.process_new_packets()?;
            if let Some(shared) = take_shared_secret() {
                self.shared_secret = Some(shared);
            }
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            self.tls.reader().read_exact(&mut plain).map_err(|error| io(&error))?;
            self.plaintext.extend(&plain);
            closed |= state.peer_has_closed();
        }
        if self.tls.is_handshaking() {
            return if closed {
                Err(rustls::Error::General(
                    "the server closed the connection during the handshake".into(),
                ))
            } else {
                Ok(())
            };
        }
        let was_over = self.is_complete();
        self.outcome = match response::read(&self.plaintext, &self.content_type, self.mode) {
            Err(ResponseError::Truncated) if !closed => None,
            read => Some(read.map(drop)),
        };
        if self.is_complete() && !was_over {
            self.tls.send_close_notify();
        }
        Ok(())
    }

    /// Returns whether the response is complete or can never be complete, so that there is nothing
    /// to wait for.
    pub(crate) const fn is_complete(&self) -> bool {
        self.outcome.is_some()
    }

    /// Returns whether the response may be revealed to the attestor and would be accepted by it.
    pub(crate) fn outcome(&self) -> Result<(), ResponseError> {
        self.outcome.clone().unwrap_or(Err(ResponseError::Truncated))
    }

    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    /// Returns the handshake secret, or `None` before the handshake.
    pub(crate) fn handshake_secret(&self) -> Option<Vec<u8>> {
        let suite = Suite::from_number(self.tls.negotiated_cipher_suite()?.suite().into())?;
        Some(suite.handshake_secret(self.shared_secret.as_ref()?))
    }
}

fn io(error: &std::io::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

/// Returns the suites and groups that a connection of this mode offers. The shared secret of its
/// key exchange is what [`take_shared_secret`] returns.
#[must_use]
pub fn offered_parameters(mode: RevealMode) -> CryptoProvider {
    let usual = ring::default_provider();
    let suites = usual.cipher_suites.iter().copied().filter(|suite| match mode {
        RevealMode::ZktlsRequest | RevealMode::ZktlsFull => {
            suite.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        }
        RevealMode::FullReveal => suite.tls13().is_some(),
    });
    CryptoProvider {
        cipher_suites: suites.collect(),
        kx_groups: vec![&SecretKeepingX25519],
        ..usual
    }
}

/// Returns the shared secret of the last key exchange on this thread, once. It is called at once
/// after the packets of a connection with [`offered_parameters`] were processed.
#[must_use]
pub fn take_shared_secret() -> Option<Vec<u8>> {
    LAST_SHARED_SECRET.take()
}

thread_local! {
    /// The shared secret of the last key exchange on this thread. A thread drives one connection at
    /// a time, which takes the secret at once.
    static LAST_SHARED_SECRET: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

const X25519: &dyn SupportedKxGroup = ring::kx_group::X25519;

/// X25519 key exchange that keeps the shared secret.
#[derive(Debug)]
struct SecretKeepingX25519;

struct SecretKeepingExchange(Box<dyn ActiveKeyExchange>);

impl SupportedKxGroup for SecretKeepingX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(SecretKeepingExchange(X25519.start()?)))
    }

    fn name(&self) -> NamedGroup {
        X25519.name()
    }
}

impl ActiveKeyExchange for SecretKeepingExchange {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let shared = self.0.complete(share)?;
        LAST_SHARED_SECRET.set(Some(shared.secret_bytes().to_vec()));
        Ok(shared)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}
