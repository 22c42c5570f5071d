//! Tests of a prover, an attestor and a platform's server over real TLS, and of dishonest ones. The
//! numbers are those of the list of attacks that the design considers.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

#[path = "../../../format/tests/attacks/any_certificate.rs"]
mod any_certificate;
mod canaries;
mod connection_attacks;
mod dishonest;
mod fake_attestor;
mod limits;
mod lying;
mod programs;
mod raw;
mod secrets;
mod setup;
mod untrue;

use std::{fs, path::Path, sync::Mutex, time::Duration};

use attestation::{
    evidence::Evidence,
    protocol::{MAX_PROVER_MESSAGE_BYTES, ProverMessage},
    tlog::LogProof,
};
use domain::{session::AttestationStep, workflow::AttestMode};
use ports::attestor::{AttestError, AttestationPackage, Attestor as _};

use self::{
    raw::RawProver,
    setup::{COOKIE, Ending, Setup, proof_lock, response},
};

/// Ignores the progress of an attestation.
const fn ignore_progress(_: AttestationStep) {}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_response_is_attested_without_the_cookie() {
    let _alone = proof_lock().await;
    let setup = Setup::start().await;
    let steps = Mutex::new(vec![]);
    let reached = |step| steps.lock().unwrap().push(step);
    let attested = setup.prover().attest(setup.order(), &reached).await.unwrap();
    assert_eq!(*steps.lock().unwrap(), [AttestationStep::Recorded, AttestationStep::Proved]);
    assert_eq!(attested.values["accountId"], "acct-1");
    let package = &attested.package;
    assert_eq!(package.mode, AttestMode::ZktlsRequest);
    let evidence = package.evidence.clone().unwrap();
    let all = [&package.attestation, &package.disclosure, &evidence].map(Vec::as_slice).concat();
    assert!(!all.windows(COOKIE.len()).any(|part| part == COOKIE.as_bytes()));
    assert!(
        Evidence::read(&evidence)
            .unwrap()
            .reveal
            .request_bytes
            .starts_with(b"GET /api/me HTTP/1.1")
    );
    // A second session follows the first in the log, with the running processes.
    let again = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap();
    let log =
        |attestation: &[u8]| attestation::signed::decode_unverified(attestation).unwrap().0.log;
    let (first, second) = (log(&package.attestation), log(&again.package.attestation));
    assert_eq!((first.index, second.index), (0, 1));
    // Each is in the log by the attestor's own key, and neither proof is valid for the other one.
    let key = setup.address.keys[0];
    let in_log = |package: &AttestationPackage, inclusion: &AttestationPackage| {
        let issuer = attestation::signed::Issuer {
            name: String::new(),
            public_key: attestation::signed::hex(&key),
            valid_from: package.issuer.valid_from,
            valid_to: package.issuer.valid_to,
            revoked_at: None,
        };
        let attestation = attestation::signed::verify(&package.attestation, &[issuer]).unwrap();
        let proof = LogProof::read(inclusion.inclusion.as_deref().unwrap()).unwrap();
        proof.verify_attestation(&attestation, &proof.key_of(&key).unwrap()).is_ok()
    };
    let packages = [&attested.package, &again.package];
    for (at, package) in packages.into_iter().enumerate() {
        assert!(in_log(package, package));
        assert!(!in_log(package, packages[1 - at]));
    }
    let log = files(&setup.log());
    assert!(log.len() > 1000, "the journal, entries, tiles and checkpoint");
    assert!(!log.windows(COOKIE.len()).any(|part| part == COOKIE.as_bytes()));
}

/// Returns all files below a folder, concatenated; hexadecimal lines also decoded.
pub(crate) fn files(folder: &Path) -> Vec<u8> {
    let mut all = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter_map(attestation::signed::unhex);
        all.extend(lines.flatten().chain(bytes.iter().copied()).collect::<Vec<_>>());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn full_reveal_happens_only_if_the_plan_states_it() {
    let setup = Setup::with(|setup| setup.modes = vec![AttestMode::FullReveal]).await;
    let attested = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap();
    assert_eq!((attested.package.mode, attested.package.evidence), (AttestMode::FullReveal, None));
    // A server without ChaCha20 is not attested, neither with one mode nor with the two modes of an
    // old definition.
    let both = vec![AttestMode::FullReveal, AttestMode::ZktlsRequest];
    for modes in [vec![AttestMode::ZktlsRequest], both] {
        let setup = Setup::with(|setup| (setup.modes, setup.chacha) = (modes.clone(), false)).await;
        let refused = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap_err();
        assert!(matches!(refused, AttestError::Platform(_)), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn responses_that_cannot_be_attested_are_reported() {
    // A response that the attestor would refuse is not revealed to it.
    let answer = response(404, r#"{"id":"acct-1"}"#);
    let setup = Setup::with(|setup| setup.response_bytes = answer).await;
    let refused = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap_err();
    assert!(
        matches!(&refused, AttestError::Platform(why) if why.contains("its status is 404")),
        "{refused}"
    );
    for (answer, why) in [
        (response(200, r#"{"id":"acct-1","id":"acct-2"}"#), "twice"),
        (response(200, r#"{"other":1}"#), "is refused"),
    ] {
        // The attestor would refuse it for the same reasons, so nothing is revealed or proved.
        for mode in [AttestMode::FullReveal, AttestMode::ZktlsRequest, AttestMode::ZktlsFull] {
            let setting = (vec![mode], answer.clone());
            let setup = Setup::with(|setup| (setup.modes, setup.response_bytes) = setting).await;
            let proved = Mutex::new(false);
            let reached = |step| *proved.lock().unwrap() |= step == AttestationStep::Proved;
            let refused = setup.prover().attest(setup.order(), &reached).await.unwrap_err();
            let told = matches!(&refused, AttestError::Platform(text) if text.contains(why));
            assert!(told && !*proved.lock().unwrap(), "{mode:?}: {refused}");
        }
    }
    let setup = Setup::start().await;
    let mut order = setup.order();
    order.cookies = domain::secret::Secret::new("sid=a\r\nX-Evil: 1".into());
    let refused = setup.prover().attest(order, &ignore_progress).await.unwrap_err();
    assert!(matches!(refused, AttestError::Plan(_)), "{refused}");
}

/// Finding 10: a common server does not count the padding of a hidden value.
#[tokio::test]
async fn servers_ignore_the_padding() {
    let setup = Setup::start().await;
    let bytes = prover::request(&setup.order(), &setup.descriptor());
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(&format!("cookie: {COOKIE:<64}\r\nuser-agent: {:<64}\r\n", "Browser/1")));
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let service = hyper::service::service_fn(|asked: hyper::Request<hyper::body::Incoming>| {
        let told = asked.headers().get("cookie").map(|value| value.as_bytes().to_vec());
        let status = if told.as_deref() == Some(COOKIE.as_bytes()) { 200 } else { 400 };
        let answer = hyper::Response::builder().status(status);
        std::future::ready(answer.body(String::new()))
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .serve_connection(hyper_util::rt::TokioIo::new(server), service);
    tokio::io::AsyncWriteExt::write_all(&mut client, &bytes).await.unwrap();
    let mut answer = String::new();
    let reading = tokio::io::AsyncReadExt::read_to_string(&mut client, &mut answer);
    let (done, _) = tokio::join!(serving, reading);
    done.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Finding 9: a response that states its own length needs no `close_notify`, and the prover does
/// not wait for one; without a stated length there is no response.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_connection_ends_when_the_response_is_complete() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let body = r#"{"id":"acct-1"}"#;
    let counted = response(200, body);
    let length = body.len();
    let chunked =
        format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n");
    for (answer, ending) in [
        (counted.clone(), Ending::Drop),
        (chunked.clone().into_bytes(), Ending::Drop),
        (counted.clone(), Ending::Stay),
    ] {
        let setting = (vec![AttestMode::FullReveal], answer, ending);
        let setup = Setup::with(|setup| {
            (setup.modes, setup.response_bytes, setup.ending) = setting;
            setup.bounds.relay_timeout = Duration::from_secs(5);
        });
        let setup = setup.await;
        let begun = std::time::Instant::now();
        let attested = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap();
        assert_eq!(attested.values["accountId"], "acct-1");
        assert!(begun.elapsed() < Duration::from_secs(5), "{ending:?}");
    }
    for (answer, ending, why) in [
        (counted[..counted.len() - 1].to_vec(), Ending::Drop, "it is truncated"),
        (chunked.as_bytes()[..chunked.len() - 2].to_vec(), Ending::Drop, "it is truncated"),
        (counted[..20].to_vec(), Ending::CloseNotify, "it is truncated"),
        (format!("{HEAD}\r\n{body}").into_bytes(), Ending::CloseNotify, "stated in no way"),
    ] {
        let setting = (vec![AttestMode::FullReveal], answer, ending);
        let setup = Setup::with(|setup| {
            (setup.modes, setup.response_bytes, setup.ending) = setting;
            setup.bounds.relay_timeout = Duration::from_secs(5);
        });
        let setup = setup.await;
        let refused = setup.prover().attest(setup.order(), &ignore_progress).await.unwrap_err();
        assert!(
            matches!(&refused, AttestError::Platform(text) if text.contains(why)),
            "{ending:?}: {refused}"
        );
    }
    let _alone = proof_lock().await;
    // The same with a proof, whose statement ends with the client's own close_notify.
    let setup = Setup::with(|setup| setup.ending = Ending::Drop).await;
    setup.prover().attest(setup.order(), &ignore_progress).await.unwrap();
}

/// Attack 43: too many bytes, too long messages, too slow and too many connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_and_connections_are_limited() {
    let setup = Setup::with(|setup| {
        setup.bounds.relay_timeout = Duration::from_secs(1);
        setup.bounds.conversations = 1;
    })
    .await;
    let mut raw = RawProver::connect(&setup).await;
    raw.open(setup.open([1; 32])).await;
    for _ in 0..5 {
        raw.send(&ProverMessage::Data(vec![0; 16 * 1024])).await;
    }
    assert_eq!(raw.refusal().await, "more than 65536 bytes for the server");
    let mut slow = RawProver::connect(&setup).await;
    slow.open(setup.open([2; 32])).await;
    assert_eq!(slow.refusal().await, "the relayed connection took longer than 1 s");
    let mut long = RawProver::connect(&setup).await;
    long.bytes(&u32::try_from(MAX_PROVER_MESSAGE_BYTES + 1).unwrap().to_be_bytes()).await;
    assert_eq!(long.refusal().await, "the connection ended, or a message was late or malformed");
    let mut noise = RawProver::connect(&setup).await;
    noise.bytes(&[0, 0, 0, 3, 0x9f, 0xff, 0xff]).await;
    assert_eq!(noise.refusal().await, "the connection ended, or a message was late or malformed");
    let mut piece = RawProver::connect(&setup).await;
    piece.open(setup.open([3; 32])).await;
    piece.send(&ProverMessage::Data(vec![0; 16 * 1024 + 1])).await;
    assert_eq!(piece.refusal().await, "the message is not allowed in this state");
}

/// A precondition of attack 40: a route that the attestor does not choose itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn addresses_that_are_not_public_are_refused() {
    let setup = Setup::with(|setup| setup.has_fixed_address = false).await;
    let mut raw = RawProver::connect(&setup).await;
    raw.send(&ProverMessage::Open(setup.open([1; 32]))).await;
    let why = "the server's name resolves to no permitted address";
    assert_eq!(raw.refusal().await, why);
    let setup = Setup::with(|setup| setup.tokens = vec!["known"]).await;
    let mut raw = RawProver::connect(&setup).await;
    raw.send(&ProverMessage::Open(setup.open([1; 32]))).await;
    assert_eq!(raw.refusal().await, "unknown client");
    let mut address = setup.address.clone();
    address.token = "known".into();
    let _alone = proof_lock().await;
    setup.prover_to(address).attest(setup.order(), &ignore_progress).await.unwrap();
}

/// A revocation also applies to running conversations.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_revoked_during_a_conversation_signs_nothing() {
    let setup = Setup::with(|setup| setup.modes = vec![AttestMode::FullReveal]).await;
    let revoke = |step| {
        if step == AttestationStep::Recorded {
            setup.revoke();
        }
    };
    let refused = setup.prover().attest(setup.order(), &revoke).await.unwrap_err();
    assert!(refused.to_string().contains("revoked meanwhile"), "{refused}");
    // No new conversation starts either.
    assert!(setup.prover().attest(setup.order(), &ignore_progress).await.is_err());
}
