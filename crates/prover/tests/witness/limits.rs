//! Clients above their limits, attestors without capacity, and lost connections: which of them are
//! retried, and which are not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use attestation::protocol::{FromAttestor, FromProver, Open, Telling};
use domain::workflow::AttestMode;
use ports::attestor::{AttestError, Attestor as _};
use prover::Address;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{raw::Raw, scene::Scene, secrets::Secrets, unheard};

const FULL: [AttestMode; 1] = [AttestMode::FullReveal];

/// Finding 10: a lost conversation is repeated, and the attestor signs that it is the second
/// attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_attestor_is_tried_once_more() {
    let scene = Scene::with(|scene| scene.modes = FULL.to_vec()).await;
    let (address, connections) = losing(&scene, 1).await;
    let attested = scene.prover_to(address).attest(scene.order(), &unheard).await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    assert_eq!(attempt(&attested.package.attestation), 2);
    // Attempts at a challenge are counted over all sessions.
    for number in 1..=2 {
        let order = ports::attestor::AttestOrder { challenge: vec![7; 8], ..scene.order() };
        let attested = scene.prover().attest(order, &unheard).await.unwrap();
        assert_eq!(attempt(&attested.package.attestation), number);
    }
    let (address, connections) = losing(&scene, usize::MAX).await;
    let lost = scene.prover_to(address).attest(scene.order(), &unheard).await.unwrap_err();
    assert!(matches!(lost, AttestError::Lost(_)), "{lost}");
    assert_eq!(connections.load(Ordering::SeqCst), 2, "one retry only");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_refused_is_not_tried_again() {
    let setting = (FULL.to_vec(), vec!["known"]);
    let scene = Scene::with(|scene| (scene.modes, scene.tokens) = setting).await;
    let (address, connections) = losing(&scene, 0).await;
    let refused = scene.prover_to(address).attest(scene.order(), &unheard).await.unwrap_err();
    assert!(matches!(refused, AttestError::Refused(_)), "{refused}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_without_a_place_is_tried_once_more() {
    let scene = Scene::with(|scene| {
        scene.modes = FULL.to_vec();
        scene.bounds.conversations = 1;
    });
    let scene = scene.await;
    let mut raw = Raw::connect(&scene).await;
    raw.open(open(&scene, [1; 32])).await;
    let busy = scene.prover().attest(scene.order(), &unheard).await.unwrap_err();
    let told = "too many conversations";
    assert!(matches!(&busy, AttestError::Busy(why) if why == told), "{busy}");
    let leave = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(raw);
    };
    let prover = scene.prover();
    let (attested, ()) = tokio::join!(prover.attest(scene.order(), &unheard), leave);
    attested.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_client_takes_all_places() {
    let scene = Scene::with(|scene| {
        scene.tokens = vec!["one", "other"];
        scene.bounds.per_client = 2;
    });
    let scene = scene.await;
    let order =
        |session: u8, token: &str| Open { token: token.into(), ..scene.open([session; 32]) };
    let [mut first, mut second] = [Raw::connect(&scene).await, Raw::connect(&scene).await];
    first.open(order(1, "one")).await;
    second.open(order(2, "one")).await;
    let mut third = Raw::connect(&scene).await;
    third.say(&FromProver::Open(order(3, "one"))).await;
    assert!(matches!(third.hear().await, Some(FromAttestor::Welcome(_))));
    let Some(FromAttestor::Busy(why)) = third.hear().await else { panic!("it was served") };
    assert_eq!(why, "too many conversations of this client");
    let mut fourth = Raw::connect(&scene).await;
    fourth.open(order(4, "other")).await;
    // A connection without an open message is limited too, and takes no permit of conversations.
    let silent = [Raw::connect(&scene).await, Raw::connect(&scene).await];
    assert!(Raw::connect(&scene).await.refused().await.contains("of this client"));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn examinations_wait_in_a_bounded_queue_and_time() {
    let scene = Scene::with(|scene| {
        (scene.modes, scene.hangs) = (FULL.to_vec(), true);
        scene.bounds.queue = 1;
        scene.bounds.queue_timeout = Duration::from_millis(700);
        scene.bounds.examination_timeout = Duration::from_secs(3);
    });
    let scene = scene.await;
    let mut examined = told(&scene, 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut waiting = told(&scene, 2).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut refused = told(&scene, 3).await;
    assert_eq!(refused.refused().await, "too many examinations are waiting");
    assert_eq!(waiting.refused().await, "no examination could start within 700ms");
    let late = examined.hear().await;
    let Some(FromAttestor::Busy(why)) = late else { panic!("{late:?}") };
    assert_eq!(why, "failed to examine the recording: it took longer than 3 s");
}

fn open(scene: &Scene, session: [u8; 32]) -> Open {
    Open { mode: 0, ..scene.open(session) }
}

/// Starts a conversation that waits for its examination.
async fn told(scene: &Scene, session: u8) -> Raw {
    let mut raw = Raw::connect(scene).await;
    raw.open(open(scene, [session; 32])).await;
    raw.say(&FromProver::End).await;
    assert!(matches!(raw.hear().await, Some(FromAttestor::Receipt(_))));
    raw.say(&FromProver::Reveal(Telling::FullReveal(vec![0; 32]))).await;
    raw
}

/// Starts a proxy to the attestor that drops this many connections, each once the platform's server
/// was reached. Returns its address and the number of connections.
async fn losing(scene: &Scene, lost: usize) -> (Address, Arc<AtomicUsize>) {
    let to = (scene.address.host.clone(), scene.address.port);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let (count, secrets) = (connections.clone(), scene.secrets.clone());
    tokio::spawn(async move {
        while let Ok((here, _)) = listener.accept().await {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let there = TcpStream::connect((to.0.as_str(), to.1)).await.unwrap();
            tokio::spawn(pass(here, there, (number < lost).then(|| secrets.clone())));
        }
    });
    (Address { port, ..scene.address.clone() }, connections)
}

/// Relays bytes until the server has learned another secret.
async fn pass(here: TcpStream, there: TcpStream, lose: Option<Secrets>) -> Option<()> {
    let known = lose.as_ref().map(|secrets| secrets.all().len());
    let (mut asked, mut client) = here.into_split();
    let (mut answered, mut server) = there.into_split();
    let up = async { tokio::io::copy(&mut asked, &mut server).await.ok() };
    let down = async {
        let mut buffer = [0; 4096];
        loop {
            let read = answered.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            if lose.as_ref().map(|secrets| secrets.all().len()) != known {
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
    attestation::signed::unverified(attestation).unwrap().0.attempt
}
