//! The channel to the attestor: TLS, in which the attestor authenticates itself by signing the
//! channel binding.

use std::{sync::Arc, time::Duration};

use attestation::{
    protocol::{
        ALPN, AttestorMessage, EXPORTER_LABEL, MAX_ATTESTOR_MESSAGE_BYTES, ProverMessage, Welcome,
    },
    signed::hex,
};
use domain::id::SessionId;
use ports::attestor::AttestError;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use worker_process::frames;

use crate::{AttestorAddress, Prover, sanitize::sanitize_error, verification::is_within_skew};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// A channel to an authenticated attestor.
pub(crate) struct AttestorChannel {
    stream: TlsStream<TcpStream>,
    pub(crate) welcome: Welcome,
}

impl Prover {
    /// Opens a channel to the configured attestor and authenticates it. Waits for one that is
    /// unreachable, as long as [`Outage`](crate::outage::Outage) says.
    pub(crate) async fn connect(&self, session: SessionId) -> Result<AttestorChannel, AttestError> {
        let mut is_waiting = false;
        loop {
            let attempted = Instant::now();
            let connected = self.address.connect().await.map_err(sanitize_error);
            if !matches!(connected, Err(AttestError::Lost(_))) {
                self.outage.end();
                return connected;
            }
            if !self.outage.record_failure(attempted, Instant::now()) {
                return connected;
            }
            if let Err(error) = &connected
                && !is_waiting
            {
                tracing::warn!(session.id = %session, %error, "failed to reach the attestor; waiting for it");
                is_waiting = true;
            }
            tokio::time::sleep(RECONNECT_INTERVAL).await;
        }
    }
}

impl AttestorAddress {
    /// Opens a channel to this attestor and authenticates it.
    pub(crate) async fn connect(&self) -> Result<AttestorChannel, AttestError> {
        let unreachable = |error: &dyn std::error::Error| AttestError::Lost(error.to_string());
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let connecting = async {
            let to = (self.host.as_str(), self.port);
            let stream = TcpStream::connect(to).await.map_err(|error| unreachable(&error))?;
            let _ = stream.set_nodelay(true);
            let config = client_config().map_err(|error| unreachable(&error))?;
            // The certificate is ephemeral, so its name does not identify anyone.
            let name = ServerName::try_from("attestor.invalid").map_err(|e| unreachable(&e))?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
            let mut stream = stream.map_err(|error| unreachable(&error))?;
            let binding = stream.get_ref().1.export_keying_material([0; 32], EXPORTER_LABEL, None);
            let binding = binding.map_err(|error| unreachable(&error))?;
            let received = receive(&mut stream).await?;
            let AttestorMessage::Welcome(welcome) = received else {
                return Err(unexpected_message(received));
            };
            if !welcome.is_bound_to(&binding) {
                let reason = "it does not hold the private key of its public key";
                return Err(AttestError::Attestor(reason.into()));
            }
            if !self.keys.contains(&welcome.public_key) {
                let key = hex(&welcome.public_key);
                let reason = format!("its key {key} is not the configured one");
                return Err(AttestError::Attestor(reason));
            }
            if !is_within_skew(welcome.valid_from..welcome.valid_to) {
                return Err(AttestError::Attestor("its key is not valid now".into()));
            }
            Ok(AttestorChannel { stream, welcome })
        };
        let connected = timeout_at(deadline, connecting).await;
        connected.map_err(|_| AttestError::Lost("it does not answer".into()))?
    }
}

impl AttestorChannel {
    pub(crate) async fn send(&mut self, message: &ProverMessage) -> Result<(), AttestError> {
        let broken = |error: &dyn std::error::Error| AttestError::Attestor(error.to_string());
        let bytes = message.write().map_err(|error| broken(&error))?;
        let written = frames::write(&mut self.stream, &bytes).await;
        written.map_err(|error| AttestError::Lost(error.to_string()))
    }

    pub(crate) async fn receive(&mut self) -> Result<AttestorMessage, AttestError> {
        receive(&mut self.stream).await
    }
}

async fn receive(stream: &mut TlsStream<TcpStream>) -> Result<AttestorMessage, AttestError> {
    let broken = |error: &dyn std::error::Error| AttestError::Attestor(error.to_string());
    let message = frames::read(stream, MAX_ATTESTOR_MESSAGE_BYTES).await;
    let message = message.map_err(|error| AttestError::Lost(error.to_string()))?;
    let message = message.ok_or_else(|| AttestError::Lost("it closed the connection".into()))?;
    AttestorMessage::read(&message).map_err(|error| broken(&error))
}

pub(crate) fn unexpected_message(message: AttestorMessage) -> AttestError {
    match message {
        AttestorMessage::Refused(reason) => AttestError::Refused(reason),
        AttestorMessage::Busy(reason) => AttestError::Busy(reason),
        AttestorMessage::Welcome(_)
        | AttestorMessage::Opened(_)
        | AttestorMessage::Data(_)
        | AttestorMessage::Receipt(_)
        | AttestorMessage::Attested(_) => {
            AttestError::Attestor("its message is not allowed in this state".into())
        }
    }
}

fn client_config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

/// Accepts any certificate: the attestor authenticates itself by signing the channel binding.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is supported".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
