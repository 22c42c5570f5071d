//! A client that sends arbitrary messages to an attestor.

use std::{sync::Arc, time::Duration};

use attestation::protocol::{
    ALPN, AttestorMessage, MAX_ATTESTOR_MESSAGE_BYTES, OpenRequest, ProverMessage,
};
use prover::AttestorAddress;
use rustls::{ClientConfig, crypto::ring, pki_types::ServerName};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use worker_process::frames;

use crate::{any_certificate::AnyCertificate, setup::Setup};

const RECEIVE_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct RawProver(TlsStream<TcpStream>);

impl RawProver {
    /// Connects to the attestor of a setup.
    pub(crate) async fn connect(setup: &Setup) -> Self {
        Self::connect_to(&setup.address).await
    }

    pub(crate) async fn connect_to(address: &AttestorAddress) -> Self {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate))
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.unwrap();
        let name = ServerName::try_from("attestor.invalid").unwrap();
        Self(TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap())
    }

    pub(crate) async fn send(&mut self, message: &ProverMessage) {
        // The attestor may have closed the connection.
        let _ = frames::write(&mut self.0, &message.write().unwrap()).await;
    }

    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Option<AttestorMessage> {
        let heard = frames::read(&mut self.0, MAX_ATTESTOR_MESSAGE_BYTES);
        let heard = tokio::time::timeout(RECEIVE_TIMEOUT, heard).await.unwrap();
        Some(AttestorMessage::read(&heard.ok()??).unwrap())
    }

    /// Opens the connection to the server.
    pub(crate) async fn open(&mut self, open: OpenRequest) {
        assert!(matches!(self.receive().await, Some(AttestorMessage::Welcome(_))));
        self.send(&ProverMessage::Open(open)).await;
        assert!(matches!(self.receive().await, Some(AttestorMessage::Opened(_))));
    }

    /// Returns the reason of the refusal, skipping the messages before it.
    pub(crate) async fn refusal(&mut self) -> String {
        loop {
            match self.receive().await {
                Some(AttestorMessage::Refused(why) | AttestorMessage::Busy(why)) => return why,
                Some(AttestorMessage::Attested(_)) => panic!("it was attested"),
                Some(
                    AttestorMessage::Welcome(_)
                    | AttestorMessage::Opened(_)
                    | AttestorMessage::Data(_)
                    | AttestorMessage::Receipt(_),
                ) => (),
                None => panic!("it ended without a reason"),
            }
        }
    }
}
