//! The channel to the attestor: TLS, in which the attestor authenticates itself by signing the
//! channel binding.

use std::{sync::Arc, time::Duration};

use attestation::{
    protocol::{ALPN, EXPORTER, FromAttestor, FromProver, LONGEST_FROM_ATTESTOR, Welcome},
    signed::hex,
};
use jobs::frames;
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

use crate::{Prover, attested::is_about};

const CONNECT: Duration = Duration::from_secs(15);

/// A channel to an authenticated attestor.
pub(crate) struct Channel {
    stream: TlsStream<TcpStream>,
    pub(crate) welcome: Welcome,
}

impl Prover {
    /// Opens a channel to the configured attestor and authenticates it.
    pub(crate) async fn connect(&self) -> Result<Channel, AttestError> {
        let unreachable = |error: &dyn std::error::Error| AttestError::Lost(error.to_string());
        let until = Instant::now() + CONNECT;
        let connecting = async {
            let to = (self.address.host.as_str(), self.address.port);
            let stream = TcpStream::connect(to).await.map_err(|error| unreachable(&error))?;
            let _ = stream.set_nodelay(true);
            let config = config().map_err(|error| unreachable(&error))?;
            // The certificate is ephemeral, so its name does not identify anyone.
            let name = ServerName::try_from("attestor.invalid").map_err(|e| unreachable(&e))?;
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
            let mut stream = stream.map_err(|error| unreachable(&error))?;
            let channel = stream.get_ref().1.export_keying_material([0; 32], EXPORTER, None);
            let channel = channel.map_err(|error| unreachable(&error))?;
            let heard = hear(&mut stream).await?;
            let FromAttestor::Welcome(welcome) = heard else { return Err(unexpected(heard)) };
            if !welcome.holds(&channel) {
                let why = "it does not hold the private key of its public key";
                return Err(AttestError::Attestor(why.into()));
            }
            if !self.address.keys.contains(&welcome.public_key) {
                let key = hex(&welcome.public_key);
                let why = format!("its key {key} is not the configured one");
                return Err(AttestError::Attestor(why));
            }
            if !is_about(welcome.valid_from..welcome.valid_to) {
                return Err(AttestError::Attestor("its key is not valid now".into()));
            }
            Ok(Channel { stream, welcome })
        };
        let connected = timeout_at(until, connecting).await;
        connected.map_err(|_| AttestError::Lost("it does not answer".into()))?
    }
}

impl Channel {
    pub(crate) async fn say(&mut self, message: &FromProver) -> Result<(), AttestError> {
        let broken = |error: &dyn std::error::Error| AttestError::Attestor(error.to_string());
        let bytes = message.write().map_err(|error| broken(&error))?;
        let written = frames::write(&mut self.stream, &bytes).await;
        written.map_err(|error| AttestError::Lost(error.to_string()))
    }

    pub(crate) async fn hear(&mut self) -> Result<FromAttestor, AttestError> {
        hear(&mut self.stream).await
    }
}

async fn hear(stream: &mut TlsStream<TcpStream>) -> Result<FromAttestor, AttestError> {
    let broken = |error: &dyn std::error::Error| AttestError::Attestor(error.to_string());
    let message = frames::read(stream, LONGEST_FROM_ATTESTOR).await;
    let message = message.map_err(|error| AttestError::Lost(error.to_string()))?;
    let message = message.ok_or_else(|| AttestError::Lost("it closed the connection".into()))?;
    FromAttestor::read(&message).map_err(|error| broken(&error))
}

pub(crate) fn unexpected(message: FromAttestor) -> AttestError {
    match message {
        FromAttestor::Refused(why) => AttestError::Refused(why),
        FromAttestor::Busy(why) => AttestError::Busy(why),
        FromAttestor::Welcome(_)
        | FromAttestor::Opened(_)
        | FromAttestor::Data(_)
        | FromAttestor::Receipt(_)
        | FromAttestor::Attested(_) => {
            AttestError::Attestor("its message is not allowed in this state".into())
        }
    }
}

fn config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OfTheMoment(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}

/// Accepts any certificate: the attestor authenticates itself by signing the channel binding.
#[derive(Debug)]
struct OfTheMoment(Arc<CryptoProvider>);

impl ServerCertVerifier for OfTheMoment {
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
        Err(rustls::Error::General("TLS 1.3 alone".into()))
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
