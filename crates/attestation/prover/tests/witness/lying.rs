//! An attestor that relays honestly, records all messages, and lies in its own messages.

use std::sync::{Arc, Mutex};

use attestation::{
    CertificateTrust, ExaminationError,
    attest::{AttestationContext, Disclosure, attest, capture_hash},
    body::{AttestationTimes, AttestorBuild, Body, LogPosition},
    full_reveal::{Capture, Findings, examine},
    protocol::{
        AttestorMessage, ConnectionLimits, EXPORTER_LABEL, OpenRequest, ProverMessage, Receipt,
        RevealMessage, SignedAttestation, SignedReceipt, Welcome,
    },
    signed::{self, key_id},
    tlog::{Checkpoint, LogProof, RightEdge, SignedCheckpoint, entry, leaf_hash},
    zk::Spartan,
    zktls,
};
use ed25519_dalek::SigningKey;
use prover::AttestorAddress;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

use crate::{
    fake_attestor::{acceptor, announced_limits, receive, relay, send},
    setup::Setup,
};

/// The values that replace the true ones.
#[derive(Clone, Copy)]
pub(crate) struct Lies {
    /// The validity period of its key.
    pub(crate) valid: (u64, u64),
    pub(crate) opened: fn(&mut ConnectionLimits),
    /// Whether it sends the receipt at once, before any byte was relayed.
    pub(crate) early: bool,
    pub(crate) receipt: fn(&mut Receipt),
    /// Seeds of the keys that sign the receipt and the attestation.
    pub(crate) receipt_key: u8,
    pub(crate) key: u8,
    pub(crate) body: fn(&mut Body, &mut Disclosure),
    pub(crate) inclusion: fn(Vec<u8>) -> Vec<u8>,
    /// Changes the entry in its log.
    pub(crate) entry: fn([u8; 32]) -> [u8; 32],
    pub(crate) last: fn(AttestorMessage) -> AttestorMessage,
}

const TRUE_KEY: u8 = 8;

/// The behaviour without a lie.
pub(crate) const TRUTH: Lies = Lies {
    valid: (0, u64::MAX),
    opened: |_| (),
    early: false,
    receipt: |_| (),
    receipt_key: TRUE_KEY,
    key: TRUE_KEY,
    body: |_, _| (),
    inclusion: |proof| proof,
    entry: |hash| hash,
    last: |message| message,
};

/// A lying attestor.
pub(crate) struct LyingAttestor {
    pub(crate) address: AttestorAddress,
    told: Arc<Mutex<Vec<ProverMessage>>>,
}

impl LyingAttestor {
    pub(crate) async fn start(setup: &Setup, lies: Lies) -> Self {
        let keys = vec![key(TRUE_KEY).verifying_key().to_bytes()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = Arc::new(Mutex::new(vec![]));
        let mut attestor = AttestorTask {
            platform: setup.platform,
            descriptor: setup.descriptor(),
            root: setup.root().to_vec(),
            lies,
            told: told.clone(),
        };
        tokio::spawn(async move {
            let acceptor = acceptor();
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                attestor.talk(stream).await;
            }
        });
        let address =
            AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys };
        Self { address, told }
    }

    /// Returns the bytes of all received messages.
    pub(crate) fn told(&self) -> Vec<u8> {
        let told = self.told.lock().unwrap();
        told.iter().flat_map(|message| message.write().unwrap()).collect()
    }

    /// Returns whether it received a reveal message.
    pub(crate) fn has_reveal(&self) -> bool {
        self.told.lock().unwrap().iter().any(|message| matches!(message, ProverMessage::Reveal(_)))
    }
}

struct AttestorTask {
    platform: std::net::SocketAddr,
    descriptor: attestation::descriptor::Descriptor,
    root: Vec<u8>,
    lies: Lies,
    told: Arc<Mutex<Vec<ProverMessage>>>,
}

impl AttestorTask {
    async fn receive(&self, stream: &mut TlsStream<TcpStream>) -> Option<ProverMessage> {
        let message = receive(stream).await?;
        self.told.lock().unwrap().push(message.clone());
        Some(message)
    }

    async fn talk(&mut self, mut stream: TlsStream<TcpStream>) -> Option<()> {
        let lies = self.lies;
        let channel =
            stream.get_ref().1.export_keying_material([0; 32], EXPORTER_LABEL, None).ok()?;
        let welcome = Welcome::new(&key(TRUE_KEY), lies.valid, &channel);
        send(&mut stream, &AttestorMessage::Welcome(welcome)).await?;
        let ProverMessage::Open(open) = self.receive(&mut stream).await? else { return None };
        let mut opened = announced_limits([3; 16]);
        (lies.opened)(&mut opened);
        send(&mut stream, &AttestorMessage::Opened(opened.clone())).await?;
        let now = attestor::now();
        let (client, server) = if lies.early {
            (vec![], vec![])
        } else {
            relay(&mut stream, self.platform, |message| self.keep(message)).await?
        };
        let capture = Capture { client: &client, server: &server };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
        let mut receipt = Receipt {
            id: opened.id,
            capture: capture_hash(&opened.id, capture),
            client_length: length(&client),
            server_length: length(&server),
            opened: now,
            closed: attestor::now(),
            address: vec![127, 0, 0, 1],
        };
        (lies.receipt)(&mut receipt);
        let signed = SignedReceipt::new(receipt.clone(), &key(lies.receipt_key)).ok()?;
        send(&mut stream, &AttestorMessage::Receipt(signed)).await?;
        let ProverMessage::Reveal(telling) = self.receive(&mut stream).await? else { return None };
        let last = match self.examined(capture, &telling) {
            Ok(found) => AttestorMessage::Attested(self.attested(&open, &receipt, capture, &found)),
            Err(refusal) => AttestorMessage::Refused(refusal.to_string()),
        };
        send(&mut stream, &(lies.last)(last)).await?;
        self.receive(&mut stream).await.map(drop)
    }

    fn keep(&self, message: &ProverMessage) {
        self.told.lock().unwrap().push(message.clone());
    }

    fn examined(
        &self,
        capture: Capture<'_>,
        telling: &RevealMessage,
    ) -> Result<Findings, ExaminationError> {
        let root = CertificateDer::from_slice(&self.root);
        let roots = [webpki::anchor_from_trusted_cert(&root).unwrap()];
        let trust = CertificateTrust { roots: &roots, now: UnixTime::now() };
        match telling {
            RevealMessage::FullReveal(secret) => examine(capture, secret, &self.descriptor, &trust),
            RevealMessage::Proved(reveal) => {
                zktls::examine(capture, reveal, &Spartan::default(), &self.descriptor, &trust)
            }
        }
    }

    fn attested(
        &self,
        open: &OpenRequest,
        receipt: &Receipt,
        capture: Capture<'_>,
        found: &Findings,
    ) -> SignedAttestation {
        let signing = key(self.lies.key);
        let circumstances = AttestationContext {
            id: receipt.id,
            issuer: key_id(&signing.verifying_key().to_bytes()),
            session: open.session,
            partner: open.partner,
            attempt: 1,
            challenge: open.challenge.clone(),
            server_address: receipt.address.clone(),
            egress: 0,
            resolver: 0,
            roots_sha256: [0; 32],
            time: AttestationTimes {
                opened: receipt.opened,
                closed: receipt.closed,
                signed: attestor::now(),
            },
            attestor: AttestorBuild { version: "0".into(), sha256: [0; 32] },
            log: LogPosition { index: 0, previous_hash: [0; 32] },
            blinding: [0; 32],
        };
        let salt = || [9; 16];
        let (mut body, mut disclosure) =
            attest(found, capture, &self.descriptor, circumstances, salt);
        (self.lies.body)(&mut body, &mut disclosure);
        let attestation = signed::sign(&body, &signing).unwrap();
        // A body of another version is not decoded, and its log entry does not matter.
        let hash = signed::decode_unverified(&attestation).map_or([0; 32], |(_, hash)| hash);
        let mut edge = RightEdge::new(0, vec![]).unwrap();
        edge.push(leaf_hash(&entry(&(self.lies.entry)(hash)))).unwrap();
        let checkpoint = Checkpoint { origin: "lying".into(), size: 1, root: edge.root() };
        let checkpoint = SignedCheckpoint::sign(&checkpoint, &[&signing]).unwrap();
        let inclusion = LogProof { index: 0, path: vec![], checkpoint }.write().into_bytes();
        let inclusion = (self.lies.inclusion)(inclusion);
        SignedAttestation { attestation, disclosure: disclosure.write().unwrap(), inclusion }
    }
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}
