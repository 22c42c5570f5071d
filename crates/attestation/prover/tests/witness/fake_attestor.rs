//! Attestors that impersonate others or sign for other bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use attestation::{
    attest::capture_hash,
    full_reveal::Capture,
    protocol::{
        ALPN, AttestorMessage, ConnectionLimits, EXPORTER_LABEL, MAX_PROVER_MESSAGE_BYTES,
        ProverMessage, Receipt, SignedReceipt, Welcome,
    },
};
use ed25519_dalek::SigningKey;
use prover::AttestorAddress;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer, version::TLS13};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use worker_process::frames;

use crate::raw::RawProver;

type Mangle = fn(&mut Vec<u8>);

/// A dishonest attestor that counts the messages which it must not receive.
pub(crate) struct FakeAttestor {
    address: AttestorAddress,
    heard: Arc<AtomicUsize>,
}

impl FakeAttestor {
    /// Forwards the welcome of a true attestor over a channel of its own.
    pub(crate) async fn forwarding(to: &AttestorAddress) -> Self {
        let true_one = to.clone();
        Self::start(to.keys.clone(), move |mut stream, heard| async move {
            let mut there = RawProver::connect_to(&true_one).await;
            let welcome = there.receive().await?;
            send(&mut stream, &welcome).await?;
            receive(&mut stream).await?;
            heard.fetch_add(1, Ordering::SeqCst);
            Some(())
        })
        .await
    }

    /// Relays honestly, and signs for other bytes than the relayed ones.
    pub(crate) async fn mangling(platform: SocketAddr, mangle: Mangle) -> Self {
        let key = SigningKey::from_bytes(&[5; 32]);
        let public = key.verifying_key().to_bytes();
        Self::start(vec![public], move |mut stream, heard| async move {
            let channel = stream.get_ref().1;
            let channel = channel.export_keying_material([0; 32], EXPORTER_LABEL, None).ok()?;
            let welcome = Welcome::new(&key, (0, u64::MAX), &channel);
            send(&mut stream, &AttestorMessage::Welcome(welcome)).await?;
            receive(&mut stream).await?;
            let id = [3; 16];
            send(&mut stream, &AttestorMessage::Opened(announced_limits(id))).await?;
            let (client, mut server) = relay(&mut stream, platform, |_| ()).await?;
            mangle(&mut server);
            let capture = capture_hash(&id, Capture { client: &client, server: &server });
            let receipt = Receipt {
                id,
                capture,
                client_length: 0,
                server_length: 0,
                opened: 0,
                closed: 0,
                address: vec![127, 0, 0, 1],
            };
            let receipt = SignedReceipt::new(receipt, &key).ok()?;
            send(&mut stream, &AttestorMessage::Receipt(receipt)).await?;
            receive(&mut stream).await?;
            heard.fetch_add(1, Ordering::SeqCst);
            Some(())
        })
        .await
    }

    async fn start<F>(
        keys: Vec<[u8; 32]>,
        talk: impl FnOnce(TlsStream<TcpStream>, Arc<AtomicUsize>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Option<()>> + Send,
    {
        let acceptor = acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(AtomicUsize::new(0));
        let counted = heard.clone();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.ok()?;
            let stream = acceptor.accept(stream).await.ok()?;
            talk(stream, counted).await
        });
        let address =
            AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys };
        Self { address, heard }
    }

    pub(crate) fn address(&self) -> AttestorAddress {
        self.address.clone()
    }

    /// Returns the number of forbidden messages, after waiting for more.
    pub(crate) async fn forbidden_messages(&self) -> usize {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        self.heard.load(Ordering::SeqCst)
    }
}

/// Returns the limits that an attestor announces.
pub(crate) const fn announced_limits(id: [u8; 16]) -> ConnectionLimits {
    let (bytes, time) = (1 << 20, 600_000);
    ConnectionLimits { id, time: 30_000, up: bytes, down: bytes, proving: time, examining: time }
}

/// Relays all bytes until the prover sends `End`, and returns both directions.
pub(crate) async fn relay(
    stream: &mut TlsStream<TcpStream>,
    platform: SocketAddr,
    keep: impl Fn(&ProverMessage),
) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut there = TcpStream::connect(platform).await.ok()?;
    let (mut client, mut server) = (vec![], vec![]);
    loop {
        let mut buffer = [0; 4096];
        // The prover speaks first, then both in turn: TLS 1.3 and one request.
        let message = receive(stream).await?;
        keep(&message);
        match message {
            ProverMessage::Data(bytes) => {
                client.extend(&bytes);
                there.write_all(&bytes).await.ok()?;
            }
            ProverMessage::End => return Some((client, server)),
            ProverMessage::Open(_) | ProverMessage::Reveal(_) => return None,
        }
        let pause = std::time::Duration::from_millis(200);
        while let Ok(Ok(read)) = tokio::time::timeout(pause, there.read(&mut buffer)).await {
            if read == 0 {
                break;
            }
            server.extend(&buffer[..read]);
            send(stream, &AttestorMessage::Data(buffer[..read].to_vec())).await?;
        }
    }
}

/// TLS with an ephemeral certificate, as attestors use it.
pub(crate) fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(vec!["attestor.invalid".into()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

pub(crate) async fn send(
    stream: &mut TlsStream<TcpStream>,
    message: &AttestorMessage,
) -> Option<()> {
    frames::write(stream, &message.write().ok()?).await.ok()
}

pub(crate) async fn receive(stream: &mut TlsStream<TcpStream>) -> Option<ProverMessage> {
    let message = frames::read(stream, MAX_PROVER_MESSAGE_BYTES).await.ok()??;
    ProverMessage::read(&message).ok()
}
