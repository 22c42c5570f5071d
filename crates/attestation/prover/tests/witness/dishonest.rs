//! Attestors that impersonate others or break the protocol, and sessions that are attested twice.

use attestation::{
    descriptor::Descriptor,
    protocol::{AttestorMessage, OpenRequest, RevealMessage},
};
use ports::attestor::Attestor as _;

use super::{
    AttestError, ProverMessage, RawProver, Setup, fake_attestor::FakeAttestor, ignore_progress,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_with_another_key_receives_nothing() {
    let setup = Setup::start().await;
    let mut address = setup.address.clone();
    address.keys = vec![[1; 32]];
    let refused =
        setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap_err();
    assert!(matches!(&refused, AttestError::Attestor(why) if why.contains("not the configured")));
    // An intermediary that forwards the true attestor's welcome.
    let between = FakeAttestor::forwarding(&setup.address).await;
    let refused = setup
        .prover_to(between.address())
        .attest(setup.order(), &ignore_progress)
        .await
        .unwrap_err();
    assert!(matches!(&refused, AttestError::Attestor(why) if why.contains("does not hold")));
    assert_eq!(between.forbidden_messages().await, 0, "nothing was sent to it");
}

/// Attack 42: a relay that drops, duplicates or changes bytes, and signs for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_receipt_for_other_bytes_ends_the_attempt_before_the_reveal() {
    let setup = Setup::start().await;
    let mangles: [fn(&mut Vec<u8>); 3] = [
        |bytes: &mut Vec<u8>| bytes.truncate(9),
        |bytes: &mut Vec<u8>| bytes.push(0),
        |bytes: &mut Vec<u8>| {
            bytes.extend(bytes.clone());
        },
    ];
    for mangle in mangles {
        let liar = FakeAttestor::mangling(setup.platform, mangle).await;
        let refused = setup
            .prover_to(liar.address())
            .attest(setup.order(), &ignore_progress)
            .await
            .unwrap_err();
        let told = liar.forbidden_messages().await;
        assert!(
            matches!(&refused, AttestError::Untrue(why) if why.contains("receipt")),
            "{refused}"
        );
        assert_eq!(told, 0, "a secret was revealed");
    }
}

/// Attack 41, and all other messages at the wrong time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_at_the_wrong_time_ends_the_conversation() {
    let setup = Setup::start().await;
    let secret = || ProverMessage::Reveal(RevealMessage::FullReveal(vec![0; 32]));
    let mut early = RawProver::connect(&setup).await;
    early.open(setup.open([1; 32])).await;
    early.send(&secret()).await;
    assert_eq!(early.refusal().await, "the message is not allowed in this state");
    for first in [secret(), ProverMessage::End, ProverMessage::Data(vec![1])] {
        let mut raw = RawProver::connect(&setup).await;
        raw.send(&first).await;
        assert_eq!(raw.refusal().await, "the message is not allowed in this state");
    }
    let mut other = RawProver::connect(&setup).await;
    other.open(setup.open([2; 32])).await;
    other.send(&ProverMessage::End).await;
    assert!(matches!(other.receive().await, Some(AttestorMessage::Receipt(_))));
    other.send(&secret()).await;
    assert!(other.refusal().await.contains("another mode"), "zktls-request was requested");
}

/// Attacks 33 and 34.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_are_attested_once_and_unknown_descriptors_are_refused() {
    let setup = Setup::start().await;
    let mut first = RawProver::connect(&setup).await;
    first.open(setup.open([1; 32])).await;
    let mut second = RawProver::connect(&setup).await;
    second.send(&ProverMessage::Open(setup.open([1; 32]))).await;
    assert_eq!(second.refusal().await, "this session has been attested or is being attested");
    drop(first);
    let changes: [fn(&mut Descriptor); 3] = [
        |descriptor: &mut Descriptor| descriptor.version = 0,
        |descriptor: &mut Descriptor| descriptor.target = "/api/other".into(),
        |descriptor: &mut Descriptor| descriptor.hidden.push("user-agent".into()),
    ];
    for change in changes {
        let mut descriptor = setup.descriptor();
        change(&mut descriptor);
        let mut raw = RawProver::connect(&setup).await;
        let open = OpenRequest { descriptor: descriptor.sha256(), ..setup.open([3; 32]) };
        raw.send(&ProverMessage::Open(open)).await;
        assert!(raw.refusal().await.contains("descriptor is not allowed"));
    }
    let mut raw = RawProver::connect(&setup).await;
    let open = OpenRequest { mode: 0, ..setup.open([3; 32]) };
    raw.send(&ProverMessage::Open(open)).await;
    assert!(raw.refusal().await.contains("does not allow this mode"), "a weaker mode");
}
