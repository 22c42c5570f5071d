//! A TLS connection to the server with all bytes of both directions, as an attestor would record
//! them.

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    sync::Arc,
};

use attestation::{
    full_reveal::Capture, http::response::MAX_RESPONSE_BYTES, protocol::MAX_DATA_BYTES,
};
use prover::{ALPN_PROTOCOL, take_shared_secret};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, HandshakeKind, NamedGroup, ProtocolVersion,
    RootCertStore, SupportedCipherSuite, SupportedProtocolVersion,
    client::Resumption,
    crypto::{CryptoProvider, SupportedKxGroup},
    pki_types::ServerName,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{certificates::ChainRecorder, observation::CertificateObserved, text::printable};

/// Maximum number of bytes from the server on one connection: the longest attested response, and the
/// handshake and the framing of its records.
const MAX_SERVER_BYTES: usize = MAX_RESPONSE_BYTES + 128 * 1024;

/// What a handshake offers.
#[derive(Clone)]
pub(crate) struct HandshakeOffer {
    pub(crate) provider: CryptoProvider,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error("failed to connect: {0}")]
    Connect(String),
    #[error("{0}")]
    Refused(String),
    #[error("the server shares no protocol of ALPN")]
    NoProtocol,
}

/// The trust, name and address of all connections of a probe.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) roots: Arc<RootCertStore>,
}

/// A connection whose handshake is complete.
pub(crate) struct ProbedConnection {
    stream: TcpStream,
    tls: ClientConnection,
    chain: Arc<ChainRecorder>,
    client: Vec<u8>,
    server: Vec<u8>,
    /// Number of bytes of `client` that were sent.
    sent: usize,
    shared_secret: Option<Vec<u8>>,
    is_closed: bool,
    has_close_notify: bool,
}

impl ProbedConnection {
    /// Connects, and completes the handshake, with the protocol of an attestation or without any.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        offer: &HandshakeOffer,
        has_alpn: bool,
    ) -> Result<Self, ConnectionError> {
        let refused =
            |error: rustls::Error| ConnectionError::Refused(printable(&error.to_string()));
        let provider = Arc::new(offer.provider.clone());
        let chain = ChainRecorder::new(endpoint.roots.clone(), provider.clone());
        let chain = Arc::new(chain.map_err(refused)?);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&offer.versions)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(chain.clone())
            .with_no_client_auth();
        if has_alpn {
            config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        }
        config.resumption = Resumption::disabled();
        let tls = ClientConnection::new(Arc::new(config), endpoint.server_name.clone());
        let tls = tls.map_err(refused)?;
        let stream = TcpStream::connect(endpoint.address).await;
        let stream = stream.map_err(|error| ConnectionError::Connect(error.to_string()))?;
        let mut connection = Self {
            stream,
            tls,
            chain,
            client: vec![],
            server: vec![],
            sent: 0,
            shared_secret: None,
            is_closed: false,
            has_close_notify: false,
        };
        while connection.tls.is_handshaking() {
            connection.send_pending().await?;
            connection.receive().await?;
            if connection.is_closed && connection.tls.is_handshaking() {
                let why = "the server closed the connection during the handshake";
                return Err(ConnectionError::Refused(why.into()));
            }
        }
        connection.send_pending().await?;
        Ok(connection)
    }

    /// Sends application data.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.tls.writer().write_all(bytes).map_err(|error| lost(&error))?;
        self.send_pending().await
    }

    /// Sends `close_notify`, as a prover does once the response is complete. A server that has closed
    /// the connection is no error.
    pub(crate) async fn close(&mut self) {
        self.tls.send_close_notify();
        let _ = self.send_pending().await;
    }

    /// Returns the next application data; an empty vector may also mean that a record had none.
    pub(crate) async fn receive(&mut self) -> Result<Vec<u8>, ConnectionError> {
        let mut buffer = vec![0; MAX_DATA_BYTES];
        let read = self.stream.read(&mut buffer).await.map_err(|error| lost(&error))?;
        let mut rest = buffer.get(..read).unwrap_or_default();
        if rest.is_empty() || self.server.len() + rest.len() > MAX_SERVER_BYTES {
            self.is_closed = true;
            return Ok(vec![]);
        }
        self.server.extend(rest);
        let mut plaintext = vec![];
        while !rest.is_empty() {
            // rustls accepts no bytes after close_notify; the examination sees them.
            if self.tls.read_tls(&mut rest).map_err(|error| lost(&error))? == 0 {
                self.is_closed = true;
                break;
            }
            let state = self.tls.process_new_packets();
            if let Some(shared) = take_shared_secret() {
                self.shared_secret = Some(shared);
            }
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    // Tells the server why, if it listens.
                    let _ = self.send_pending().await;
                    return Err(refusal(&error));
                }
            };
            let start = plaintext.len();
            plaintext.resize(start + state.plaintext_bytes_to_read(), 0);
            let place = plaintext.get_mut(start..).unwrap_or_default();
            self.tls.reader().read_exact(place).map_err(|error| lost(&error))?;
            self.has_close_notify |= state.peer_has_closed();
            self.is_closed |= state.peer_has_closed();
        }
        Ok(plaintext)
    }

    async fn send_pending(&mut self) -> Result<(), ConnectionError> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.client).map_err(|error| lost(&error))?;
        }
        let rest = self.client.get(self.sent..).unwrap_or_default();
        self.stream.write_all(rest).await.map_err(|error| lost(&error))?;
        self.sent = self.client.len();
        Ok(())
    }

    /// Returns whether nothing more comes from the server.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) const fn has_close_notify(&self) -> bool {
        self.has_close_notify
    }

    pub(crate) fn certificate(&self) -> Option<CertificateObserved> {
        self.chain.observed()
    }

    /// Returns whether the server selected the offered protocol.
    pub(crate) fn has_protocol(&self) -> bool {
        self.tls.alpn_protocol() == Some(ALPN_PROTOCOL)
    }

    pub(crate) fn has_hello_retry(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest)
    }

    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.tls.protocol_version()
    }

    pub(crate) fn suite(&self) -> Option<SupportedCipherSuite> {
        self.tls.negotiated_cipher_suite()
    }

    pub(crate) fn group(&self) -> Option<NamedGroup> {
        self.tls.negotiated_key_exchange_group().map(SupportedKxGroup::name)
    }

    /// Returns the bytes of both directions.
    pub(crate) fn capture(&self) -> Capture<'_> {
        Capture { client: &self.client, server: &self.server }
    }

    /// Returns the handshake secret of a connection with the parameters that a prover offers.
    pub(crate) fn handshake_secret(&self) -> Option<Vec<u8>> {
        let number = self.suite()?.suite().into();
        let suite = attestation::Suite::from_number(number)?;
        Some(suite.handshake_secret(self.shared_secret.as_ref()?))
    }
}

fn refusal(error: &rustls::Error) -> ConnectionError {
    if *error == rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) {
        ConnectionError::NoProtocol
    } else {
        ConnectionError::Refused(printable(&error.to_string()))
    }
}

fn lost(error: &std::io::Error) -> ConnectionError {
    ConnectionError::Refused(printable(&format!("the connection was lost: {error}")))
}
