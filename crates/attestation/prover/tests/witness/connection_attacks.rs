//! An attestor that attacks the connection to the platform in every message that it can send, and
//! records everything that the prover sends.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use attestation::protocol::{AttestorMessage, EXPORTER_LABEL, ProverMessage, Welcome};
use domain::{secret::Secret, workflow::AttestMode};
use ed25519_dalek::SigningKey;
use ports::attestor::{AttestError, AttestationOrder, Attestor as _};
use prover::AttestorAddress;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::server::TlsStream;

use crate::{
    canaries::{CANARIES, COOKIES},
    fake_attestor::{acceptor, announced_limits, receive, send},
    ignore_progress,
    secrets::Secrets,
    setup::{COOKIE, Ending, Setup, response, serve},
};

/// Returns the messages that are sent instead of the server's bytes: turn 0 is the handshake
/// flight, turn 1 the response.
type Lie = fn(turn: usize, bytes: Vec<u8>) -> Vec<AttestorMessage>;

const BODY: &str = r#"{"id":"acct-1"}"#;

const LIES: &[(&str, Lie)] = &[
    ("a fatal alert instead of the flight", |_, _| data(&[21, 3, 3, 0, 2, 2, 40])),
    ("a fatal alert after the flight", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { data(&[21, 3, 3, 0, 2, 2, 40]) }
    }),
    ("plaintext close_notify", |_, _| data(&[21, 3, 3, 0, 2, 1, 0])),
    ("plaintext close_notify after the flight", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { data(&[21, 3, 3, 0, 2, 1, 0]) }
    }),
    ("garbage", |_, _| data(b"HTTP/1.1 200 OK\r\n\r\n")),
    ("a truncated flight", |_, bytes| data(&bytes[..bytes.len() / 2])),
    ("a truncated response", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { data(&bytes[..bytes.len() / 2]) }
    }),
    ("another suite in the ServerHello", |turn, mut bytes| {
        if turn == 0 {
            let suite = bytes.windows(2).position(|pair| pair == [0x13, 0x03]).unwrap();
            bytes[suite + 1] = 0x01;
        }
        data(&bytes)
    }),
    ("a wrong tag in the flight", |turn, bytes| mangled(turn == 0, bytes)),
    ("a wrong tag in the response", |turn, bytes| mangled(turn == 1, bytes)),
    ("the flight twice", |_, bytes| data(&[bytes.clone(), bytes].concat())),
    ("records after close_notify, in one message", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { data(&[bytes, noise()].concat()) }
    }),
    ("a record after close_notify, in the next message", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { [data(&bytes), data(&noise())].concat() }
    }),
    ("a refusal", |_, _| vec![AttestorMessage::Refused("full-reveal only".into())]),
    ("a refusal after the flight", |turn, bytes| {
        if turn == 0 { data(&bytes) } else { vec![AttestorMessage::Refused("no".into())] }
    }),
    ("no time", |_, _| vec![AttestorMessage::Busy("later, and in another mode".into())]),
    ("opened again", |_, _| vec![opened()]),
    ("attested at once", |_, _| {
        let (attestation, disclosure) = (vec![1], vec![2]);
        vec![AttestorMessage::Attested(attestation::protocol::SignedAttestation {
            attestation,
            disclosure,
            inclusion: vec![],
        })]
    }),
];

/// A record that cannot be decrypted, longer than one read takes from a message.
fn noise() -> Vec<u8> {
    [[23, 3, 3, 0x13, 0x88].as_slice(), &[7; 5000]].concat()
}

/// Finding 2: regardless of its messages, such an attestor learns no secret and is asked for no
/// other mode, and none of them keeps the prover busy. The definition is the worst that may be
/// stored: it has two modes.
#[test]
fn an_attestor_that_breaks_the_connection_learns_nothing() {
    let (send, done) = std::sync::mpsc::channel();
    // In a separate thread: a runtime could not cancel an endless loop.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(break_in_every_way());
        send.send(()).unwrap();
    });
    done.recv_timeout(Duration::from_secs(180)).expect("all attempts ended and revealed nothing");
}

async fn break_in_every_way() {
    // Such a definition is attested in the mode that reveals less.
    let both = vec![AttestMode::ZktlsRequest, AttestMode::FullReveal];
    let request = Setup::with(|setup| setup.modes = both).await;
    let full = crate::canaries::setup().await;
    tokio::join!(attack_all(&request, 1), attack_all(&full, 2));
}

async fn attack_all(setup: &Setup, mode: u8) {
    for (name, lie) in LIES {
        let attestor = AttackingAttestor::start(setup.platform, *lie).await;
        let prover = setup.prover_to(attestor.address.clone());
        let order = AttestationOrder { cookies: Secret::new(COOKIES.into()), ..setup.order() };
        let result = prover.attest(order, &ignore_progress).await;
        assert!(result.is_err(), "{name}");
        let canaries = CANARIES.iter().map(|canary| canary.as_bytes().to_vec());
        let secrets: Vec<_> = setup.secrets.all().into_iter().chain(canaries).collect();
        attestor.learned_nothing(name, mode, &secrets);
    }
    assert!(!setup.secrets.all().is_empty(), "the server saw handshakes");
}

/// The attestor connects the prover to its own server, with a certificate of its own root.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_that_connects_to_its_own_server_learns_nothing() {
    let setup = Setup::start().await;
    let secrets = Secrets::default();
    let (own, _) = serve(true, response(200, BODY), Ending::CloseNotify, secrets.clone()).await;
    let attestor = AttackingAttestor::start(own, |_, bytes| data(&bytes)).await;
    let prover = setup.prover_to(attestor.address.clone());
    prover.attest(setup.order(), &ignore_progress).await.unwrap_err();
    attestor.learned_nothing("its own server", 1, &secrets.all());
    let said = attestor.said.lock().unwrap();
    let records = said.iter().filter(|message| matches!(message, ProverMessage::Data(_))).count();
    assert!(records <= 2, "the request was sent to a server whose certificate was refused");
}

/// Finding 3: only the prover sees credentials that the server sets, and it ends the conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn credentials_that_the_server_sets_are_not_revealed() {
    let canary = "sid=rotated-0123456789";
    let answer = String::from_utf8(response(200, BODY)).unwrap();
    let headers = format!("Set-Cookie: {canary}; Secure\r\nContent-Length");
    let answer = answer.replacen("Content-Length", &headers, 1);
    for mode in [AttestMode::ZktlsRequest, AttestMode::FullReveal] {
        let setting = (vec![mode], answer.clone().into_bytes());
        let setup = Setup::with(|setup| (setup.modes, setup.response_bytes) = setting).await;
        let attestor = AttackingAttestor::start(setup.platform, |_, bytes| data(&bytes)).await;
        let prover = setup.prover_to(attestor.address.clone());
        let refused = prover.attest(setup.order(), &ignore_progress).await.unwrap_err();
        assert!(
            matches!(&refused, AttestError::Credentials(name) if name == "set-cookie"),
            "{refused}"
        );
        assert!(!refused.to_string().contains(canary));
        let said = attestor.said.lock().unwrap();
        let (open, rest) = said.split_first().unwrap();
        assert!(matches!(open, ProverMessage::Open(_)));
        assert!(rest.iter().all(|message| matches!(message, ProverMessage::Data(_))));
        let all: Vec<u8> = said.iter().flat_map(|message| message.write().unwrap()).collect();
        for secret in setup.secrets.all().iter().map(Vec::as_slice).chain([canary.as_bytes()]) {
            assert!(!all.windows(secret.len()).any(|part| part == secret));
        }
    }
}

/// A lying attestor with the messages that it received.
struct AttackingAttestor {
    address: AttestorAddress,
    said: Arc<Mutex<Vec<ProverMessage>>>,
}

impl AttackingAttestor {
    async fn start(platform: SocketAddr, lie: Lie) -> Self {
        let key = SigningKey::from_bytes(&[6; 32]);
        let keys = vec![key.verifying_key().to_bytes()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = Arc::new(Mutex::new(vec![]));
        let heard = said.clone();
        tokio::spawn(async move {
            let acceptor = acceptor();
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let keep = |message: &ProverMessage| heard.lock().unwrap().push(message.clone());
                talk(stream, &key, platform, lie, keep).await;
            }
        });
        let address =
            AttestorAddress { host: "127.0.0.1".into(), port, token: String::new(), keys };
        Self { address, said }
    }

    fn learned_nothing(&self, name: &str, mode: u8, secrets: &[Vec<u8>]) {
        let said = self.said.lock().unwrap();
        let orders = said.iter().filter_map(|message| match message {
            ProverMessage::Open(open) => Some(open.mode),
            ProverMessage::Data(_) | ProverMessage::End | ProverMessage::Reveal(_) => None,
        });
        let orders: Vec<_> = orders.collect();
        assert!(
            !orders.is_empty() && orders.iter().all(|ordered| *ordered == mode),
            "{name}: {orders:?}"
        );
        let reveals = said.iter().filter(|message| matches!(message, ProverMessage::Reveal(_)));
        assert_eq!(reveals.count(), 0, "{name}: the connection was revealed to it");
        let all: Vec<u8> = said.iter().flat_map(|message| message.write().unwrap()).collect();
        let canaries = secrets.iter().map(Vec::as_slice).chain([COOKIE.as_bytes()]);
        for canary in canaries {
            assert!(!all.windows(canary.len()).any(|part| part == canary), "{name}: {canary:02x?}");
        }
    }
}

/// Relays in turns and lies, until the prover sends nothing more.
async fn talk(
    mut stream: TlsStream<TcpStream>,
    key: &SigningKey,
    platform: SocketAddr,
    lie: Lie,
    keep: impl Fn(&ProverMessage),
) -> Option<()> {
    let channel = stream.get_ref().1.export_keying_material([0; 32], EXPORTER_LABEL, None).ok()?;
    let welcome = Welcome::new(key, (0, u64::MAX), &channel);
    send(&mut stream, &AttestorMessage::Welcome(welcome)).await?;
    keep(&receive(&mut stream).await?);
    send(&mut stream, &opened()).await?;
    let mut there = TcpStream::connect(platform).await.ok()?;
    let mut turn = 0;
    loop {
        let message = timeout(Duration::from_secs(2), receive(&mut stream)).await.ok()??;
        keep(&message);
        if let ProverMessage::Data(bytes) = message {
            there.write_all(&bytes).await.ok()?;
        }
        let (mut bytes, mut buffer) = (vec![], [0; 4096]);
        let pause = Duration::from_millis(200);
        while let Ok(Ok(read @ 1..)) = timeout(pause, there.read(&mut buffer)).await {
            bytes.extend(&buffer[..read]);
        }
        if !bytes.is_empty() {
            for message in lie(turn, bytes) {
                send(&mut stream, &message).await?;
            }
            turn += 1;
        }
    }
}

fn opened() -> AttestorMessage {
    AttestorMessage::Opened(announced_limits([3; 16]))
}

fn data(bytes: &[u8]) -> Vec<AttestorMessage> {
    vec![AttestorMessage::Data(bytes.to_vec())]
}

fn mangled(now: bool, mut bytes: Vec<u8>) -> Vec<AttestorMessage> {
    if now {
        *bytes.last_mut().unwrap() ^= 1;
    }
    data(&bytes)
}
