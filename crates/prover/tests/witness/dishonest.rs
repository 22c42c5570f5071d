//! Attestors that impersonate others or break the protocol, and sessions that are attested twice.

use attestation::{
    descriptor::Descriptor,
    protocol::{FromAttestor, Open, Telling},
};
use ports::attestor::Attestor as _;

use super::{AttestError, FromProver, Raw, Scene, false_witness::FalseWitness, unheard};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_that_is_another_one_is_told_nothing() {
    let scene = Scene::start().await;
    let mut address = scene.address.clone();
    address.keys = vec![[1; 32]];
    let refused = scene.prover_to(address).attest(scene.order(), &unheard).await.unwrap_err();
    assert!(matches!(&refused, AttestError::Attestor(why) if why.contains("not the configured")));
    // An intermediary that forwards the true attestor's welcome.
    let between = FalseWitness::between(&scene.address).await;
    let refused =
        scene.prover_to(between.address()).attest(scene.order(), &unheard).await.unwrap_err();
    assert!(matches!(&refused, AttestError::Attestor(why) if why.contains("does not hold")));
    assert_eq!(between.heard().await, 0, "nothing was sent to it");
}

/// Attack 42: a relay that drops, duplicates or changes bytes, and signs for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_receipt_for_other_bytes_ends_it_before_a_secret_is_told() {
    let scene = Scene::start().await;
    let mangles: [fn(&mut Vec<u8>); 3] = [
        |bytes: &mut Vec<u8>| bytes.truncate(9),
        |bytes: &mut Vec<u8>| bytes.push(0),
        |bytes: &mut Vec<u8>| {
            bytes.extend(bytes.clone());
        },
    ];
    for mangle in mangles {
        let liar = FalseWitness::that_mangles(scene.platform, mangle).await;
        let refused =
            scene.prover_to(liar.address()).attest(scene.order(), &unheard).await.unwrap_err();
        let told = liar.heard().await;
        assert!(
            matches!(&refused, AttestError::Untrue(why) if why.contains("receipt")),
            "{refused}"
        );
        assert_eq!(told, 0, "a secret was revealed");
    }
}

/// Attack 41, and all other messages at the wrong time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_said_at_the_wrong_time_ends_the_conversation() {
    let scene = Scene::start().await;
    let secret = || FromProver::Reveal(Telling::FullReveal(vec![0; 32]));
    let mut early = Raw::connect(&scene).await;
    early.open(scene.open([1; 32])).await;
    early.say(&secret()).await;
    assert_eq!(early.refused().await, "the message is not allowed in this state");
    for first in [secret(), FromProver::End, FromProver::Data(vec![1])] {
        let mut raw = Raw::connect(&scene).await;
        raw.say(&first).await;
        assert_eq!(raw.refused().await, "the message is not allowed in this state");
    }
    let mut other = Raw::connect(&scene).await;
    other.open(scene.open([2; 32])).await;
    other.say(&FromProver::End).await;
    assert!(matches!(other.hear().await, Some(FromAttestor::Receipt(_))));
    other.say(&secret()).await;
    assert!(other.refused().await.contains("another mode"), "zktls-request was requested");
}

/// Attacks 33 and 34.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_are_attested_once_and_descriptors_are_the_attestors_own() {
    let scene = Scene::start().await;
    let mut first = Raw::connect(&scene).await;
    first.open(scene.open([1; 32])).await;
    let mut second = Raw::connect(&scene).await;
    second.say(&FromProver::Open(scene.open([1; 32]))).await;
    assert_eq!(second.refused().await, "this session has been attested or is being attested");
    drop(first);
    let changes: [fn(&mut Descriptor); 3] = [
        |descriptor: &mut Descriptor| descriptor.version = 0,
        |descriptor: &mut Descriptor| descriptor.target = "/api/other".into(),
        |descriptor: &mut Descriptor| descriptor.hidden.push("user-agent".into()),
    ];
    for change in changes {
        let mut descriptor = scene.descriptor();
        change(&mut descriptor);
        let mut raw = Raw::connect(&scene).await;
        let open = Open { descriptor: descriptor.sha256(), ..scene.open([3; 32]) };
        raw.say(&FromProver::Open(open)).await;
        assert!(raw.refused().await.contains("descriptor is not allowed"));
    }
    let mut raw = Raw::connect(&scene).await;
    let open = Open { mode: 0, ..scene.open([3; 32]) };
    raw.say(&FromProver::Open(open)).await;
    assert!(raw.refused().await.contains("does not allow this mode"), "a weaker mode");
}
