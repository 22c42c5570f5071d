//! Clients above their limits, attestors without capacity, and lost connections: which of them are
//! retried, and which are not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use attestation::protocol::{AttestorMessage, OpenRequest, ProverMessage, RevealMessage};
use domain::{session::AttestationStep, workflow::AttestMode};
use ports::attestor::{AttestError, Attestor as _};
use prover::AttestorAddress;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{ignore_progress, raw::RawProver, setup::Setup};

const FULL: [AttestMode; 1] = [AttestMode::FullReveal];

/// Finding 10: a lost conversation is repeated, and the attestor signs that it is the second
/// attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_connection_is_retried_once() {
    let setup = Setup::with(|setup| setup.modes = FULL.to_vec()).await;
    let (address, connections) = lossy_proxy(&setup, 1).await;
    let attested = setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    assert_eq!(attempt(&attested.package.attestation), 2);
    // Attempts at a challenge are counted over all sessions.
    for number in 1..=2 {
        let order = ports::attestor::AttestationOrder { challenge: vec![7; 8], ..setup.order() };
        let attested = setup.prover().attest(order, &ignore_progress).await.unwrap();
        assert_eq!(attempt(&attested.package.attestation), number);
    }
    let (address, connections) = lossy_proxy(&setup, usize::MAX).await;
    let lost = setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap_err();
    assert!(matches!(lost, AttestError::Lost(_)), "{lost}");
    assert_eq!(connections.load(Ordering::SeqCst), 2, "one retry only");
}

/// An attestor that restarts is waited for. Nothing was sent to it, so that this is no attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_that_is_gone_for_a_moment_is_waited_for() {
    // More often than orders are repeated.
    const FAILURES: usize = 3;
    let setup = Setup::with(|setup| setup.modes = FULL.to_vec()).await;
    let before_welcome = |number: usize| move || number < FAILURES;
    let (address, connections) = dropping_proxy(&setup, before_welcome).await;
    let attested = setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), FAILURES + 1);
    assert_eq!(attempt(&attested.package.attestation), 1);
}

/// The attestor signs once for a session, also if its reply never arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestation_whose_reply_is_lost_is_not_signed_again() {
    let setup = Setup::with(|setup| setup.modes = FULL.to_vec()).await;
    let loses_reply = Arc::new(AtomicBool::new(false));
    let is_lost = loses_reply.clone();
    let (address, connections) = dropping_proxy(&setup, move |_| {
        let is_lost = is_lost.clone();
        move || is_lost.swap(false, Ordering::SeqCst)
    })
    .await;
    let reached = |step| {
        if step == AttestationStep::Proved {
            loses_reply.store(true, Ordering::SeqCst);
        }
    };
    let refused = setup.prover_to(address).attest(setup.order(), &reached).await.unwrap_err();
    let told = "this session has been attested or is being attested";
    assert!(matches!(&refused, AttestError::Refused(why) if why == told), "{refused}");
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refusal_is_not_retried() {
    let setting = (FULL.to_vec(), vec!["known"]);
    let setup = Setup::with(|setup| (setup.modes, setup.tokens) = setting).await;
    let (address, connections) = lossy_proxy(&setup, 0).await;
    let refused =
        setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap_err();
    assert!(matches!(refused, AttestError::Refused(_)), "{refused}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_busy_attestor_is_retried_once() {
    let setup = Setup::with(|setup| {
        setup.modes = FULL.to_vec();
        setup.bounds.conversations = 1;
    });
    let setup = setup.await;
    let mut raw = RawProver::connect(&setup).await;
    raw.open(open(&setup, [1; 32])).await;
    let busy = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap_err();
    let told = "too many conversations";
    assert!(matches!(&busy, AttestError::Busy(why) if why == told), "{busy}");
    let leave = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(raw);
    };
    let prover = setup.prover();
    let (attested, ()) = tokio::join!(prover.attest(setup.order(), &ignore_progress), leave);
    attested.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_cannot_use_all_permits() {
    let setup = Setup::with(|setup| {
        setup.tokens = vec!["one", "other"];
        setup.bounds.per_client = 2;
    });
    let setup = setup.await;
    let order =
        |session: u8, token: &str| OpenRequest { token: token.into(), ..setup.open([session; 32]) };
    let [mut first, mut second] =
        [RawProver::connect(&setup).await, RawProver::connect(&setup).await];
    first.open(order(1, "one")).await;
    second.open(order(2, "one")).await;
    let mut third = RawProver::connect(&setup).await;
    third.send(&ProverMessage::Open(order(3, "one"))).await;
    assert!(matches!(third.receive().await, Some(AttestorMessage::Welcome(_))));
    let Some(AttestorMessage::Busy(why)) = third.receive().await else { panic!("it was served") };
    assert_eq!(why, "too many conversations of this client");
    let mut fourth = RawProver::connect(&setup).await;
    fourth.open(order(4, "other")).await;
    // A connection without an open message is limited too, and takes no permit of conversations.
    let silent = [RawProver::connect(&setup).await, RawProver::connect(&setup).await];
    assert!(RawProver::connect(&setup).await.refusal().await.contains("of this client"));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn waiting_examinations_are_limited_in_number_and_time() {
    let setup = Setup::with(|setup| {
        (setup.modes, setup.hangs) = (FULL.to_vec(), true);
        setup.bounds.queue = 1;
        setup.bounds.queue_timeout = Duration::from_millis(700);
        setup.bounds.examination_timeout = Duration::from_secs(3);
    });
    let setup = setup.await;
    let mut examined = await_examination(&setup, 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut waiting = await_examination(&setup, 2).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut refused = await_examination(&setup, 3).await;
    assert_eq!(refused.refusal().await, "too many examinations are waiting");
    assert_eq!(waiting.refusal().await, "no examination could start within 700ms");
    let late = examined.receive().await;
    let Some(AttestorMessage::Busy(why)) = late else { panic!("{late:?}") };
    assert_eq!(why, "failed to examine the recording: it took longer than 3 s");
}

fn open(setup: &Setup, session: [u8; 32]) -> OpenRequest {
    OpenRequest { mode: 0, ..setup.open(session) }
}

/// Starts a conversation that waits for its examination.
async fn await_examination(setup: &Setup, session: u8) -> RawProver {
    let mut raw = RawProver::connect(setup).await;
    raw.open(open(setup, [session; 32])).await;
    raw.send(&ProverMessage::End).await;
    assert!(matches!(raw.receive().await, Some(AttestorMessage::Receipt(_))));
    raw.send(&ProverMessage::Reveal(RevealMessage::FullReveal(vec![0; 32]))).await;
    raw
}

/// Starts a proxy to the attestor that drops this many connections, each once the platform's server
/// was reached. Returns its address and the number of connections.
async fn lossy_proxy(setup: &Setup, lost: usize) -> (AttestorAddress, Arc<AtomicUsize>) {
    let secrets = setup.secrets.clone();
    // Whoever reaches the server shares a new secret with it.
    let is_reached = move |number: usize| {
        let (secrets, known) = (secrets.clone(), secrets.all().len());
        move || number < lost && secrets.all().len() != known
    };
    dropping_proxy(setup, is_reached).await
}

/// Starts a proxy to the attestor that asks, whenever the attestor sends something on a connection
/// with this number, whether to drop the connection instead. Returns its address and the number of
/// connections.
async fn dropping_proxy<D>(
    setup: &Setup,
    is_dropped: impl Fn(usize) -> D + Send + 'static,
) -> (AttestorAddress, Arc<AtomicUsize>)
where
    D: Fn() -> bool + Send + Sync + 'static,
{
    let to = (setup.address.host.clone(), setup.address.port);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            let is_dropped = is_dropped(count.fetch_add(1, Ordering::SeqCst));
            let there = TcpStream::connect((to.0.as_str(), to.1)).await.unwrap();
            tokio::spawn(proxy(here, there, is_dropped));
        }
    });
    (AttestorAddress { port, ..setup.address.clone() }, connections)
}

async fn proxy(
    here: TcpStream,
    there: TcpStream,
    is_dropped: impl Fn() -> bool + Send + Sync,
) -> Option<()> {
    let (mut asked, mut client) = here.into_split();
    let (mut answered, mut server) = there.into_split();
    let up = async { tokio::io::copy(&mut asked, &mut server).await.ok() };
    let down = async {
        let mut buffer = [0; 4096];
        loop {
            let read = answered.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            if is_dropped() {
                return None::<()>;
            }
            client.write_all(&buffer[..read]).await.ok()?;
        }
    };
    tokio::select! {
        _ = up => None,
        done = down => done,
    }
}

fn attempt(attestation: &[u8]) -> u32 {
    attestation::signed::decode_unverified(attestation).unwrap().0.attempt
}
