//! Canaries in everything that only the prover and the platform's server may see: in cookies, the
//! user agent, response headers, and undeclared members of the response body.

use std::{
    io::{self, Write},
    sync::{Arc, LazyLock, Mutex},
};

use attestation::signed::hex;
use domain::{secret::Secret, workflow::AttestMode};
use ports::attestor::{AttestationOrder, Attested, Attestor as _};

use crate::{
    files, ignore_progress,
    lying::{Lies, LyingAttestor, TRUTH},
    setup::{Setup, proof_lock},
};

/// The second has non-ASCII bytes, which browsers keep (F1 of the second review).
pub(crate) const COOKIES: &str =
    "sid=canary-first-0123456789; name=canary-s\u{e9}cond-\u{43a}; theme=canary-third";
pub(crate) const CANARIES: &[&str] = &[
    "canary-first",
    "canary-s\u{e9}cond",
    "canary-third",
    "canary-agent",
    "canary-set-cookie",
    "canary-header",
    "canary@mail.test",
    "canary-name",
    "canary-item",
    "7318209",
];
const BODY: &str = r#"{"id":"acct-1","email":"canary@mail.test","balance":7318209,"list":[{"canary-name":"canary-item"}]}"#;

/// Starts a platform whose response has canaries, attested with selective disclosure.
pub(crate) async fn setup() -> Setup {
    let length = BODY.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
         Set-Cookie: sid=canary-set-cookie; Secure\r\nX-Account: canary-header\r\n\
         Content-Length: {length}\r\n\r\n{BODY}"
    );
    let setting = (vec![AttestMode::ZktlsFull], answer.into_bytes());
    Setup::with(|setup| (setup.modes, setup.response_bytes) = setting).await
}

fn order(setup: &Setup) -> AttestationOrder {
    AttestationOrder {
        cookies: Secret::new(COOKIES.into()),
        user_agent: "canary-agent/1".into(),
        ..setup.order()
    }
}

/// Asserts that no canary occurs, neither as it is nor in hexadecimal.
fn none_in(bytes: &[u8], place: &str) {
    for canary in CANARIES {
        for form in [canary.as_bytes(), hex(canary.as_bytes()).as_bytes()] {
            assert!(!bytes.windows(form.len()).any(|part| part == form), "{canary} in {place}");
        }
    }
}

fn none_in_package(attested: &Attested) {
    assert_eq!(attested.values["accountId"], "acct-1");
    assert_eq!(attested.values.len(), 1);
    let package = &attested.package;
    none_in(&package.attestation, "the attestation");
    none_in(&package.disclosure, "the disclosure");
    none_in(package.evidence.as_deref().unwrap(), "the evidence");
    none_in(package.inclusion.as_deref().unwrap(), "the proof of inclusion");
    none_in(format!("{package:?}").as_bytes(), "the package");
}

/// All trace output of the prover and the attestors in this process.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Vec<u8>>>);

impl Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static TRACED: LazyLock<Traced> = LazyLock::new(|| {
    let traced = Traced::default();
    let to = traced.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || to.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    traced
});

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn canaries_reach_neither_log_nor_package() {
    let _alone = proof_lock().await;
    let traced = &*TRACED;
    let setup = setup().await;
    let attested = setup.prover().attest(order(&setup), &ignore_progress).await.unwrap();
    none_in_package(&attested);
    let log = files(&setup.log());
    assert!(log.len() > 1000, "the journal, entries, tiles and checkpoint");
    none_in(&log, "the attestor's log");
    let traced = traced.0.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&traced).contains("attested for"), "the attestor's log lines");
    none_in(&traced, "the trace output");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestor_receives_no_canary_and_no_application_secret() {
    let _alone = proof_lock().await;
    let setup = setup().await;
    let lying = LyingAttestor::start(&setup, TRUTH).await;
    let prover = setup.prover_to(lying.address.clone());
    let attested = prover.attest(order(&setup), &ignore_progress).await.unwrap();
    none_in_package(&attested);
    assert!(lying.has_reveal());
    let told = lying.told();
    none_in(&told, "the messages to the attestor");
    let secrets = setup.secrets.application_secrets();
    assert!(secrets.len() >= 2, "those of both directions");
    for secret in secrets {
        assert!(!told.windows(secret.len()).any(|part| part == secret), "a secret of the data");
    }
}

/// F1: also in `zktls-request`, for any bytes in the cookies.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cookies_with_any_bytes_are_hidden_when_the_response_is_revealed() {
    let _alone = proof_lock().await;
    let setup = Setup::start().await;
    let lying = LyingAttestor::start(&setup, TRUTH).await;
    let prover = setup.prover_to(lying.address.clone());
    let attested = prover.attest(order(&setup), &ignore_progress).await;
    none_in(&lying.told(), "the messages to the attestor");
    none_in_package(&attested.unwrap());
}

/// A request that cannot be sent is refused before the attestor is contacted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cookies_with_control_characters_are_not_sent() {
    let setup = setup().await;
    let lying = LyingAttestor::start(&setup, TRUTH).await;
    for cookies in ["sid=canary-first\t1", "sid=canary-first\r\nX: 1", "sid=canary-first\0"] {
        let order = AttestationOrder { cookies: Secret::new(cookies.into()), ..order(&setup) };
        let prover = setup.prover_to(lying.address.clone());
        let refused = prover.attest(order, &ignore_progress).await.unwrap_err();
        assert!(refused.to_string().contains("failed to build its request"), "{refused}");
        none_in(refused.to_string().as_bytes(), "the error");
    }
    assert!(lying.told().is_empty());
}

/// A response that repeats a cookie and would be revealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cookie_that_the_server_repeats_is_not_revealed() {
    let answer = crate::setup::response(200, &format!(r#"{{"id":"acct-1","echo":"{COOKIES}"}}"#));
    let setup = Setup::with(|setup| setup.response_bytes = answer).await;
    let lying = LyingAttestor::start(&setup, TRUTH).await;
    let prover = setup.prover_to(lying.address.clone());
    let refused = prover.attest(order(&setup), &ignore_progress).await.unwrap_err();
    assert!(refused.to_string().contains("that must be hidden"), "{refused}");
    assert!(!lying.has_reveal());
    none_in(&lying.told(), "the messages to the attestor");
}

/// Lies that end the attempt before anything is revealed, and one after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lying_attestor_receives_no_canary() {
    let _alone = proof_lock().await;
    let setup = setup().await;
    let lies = [
        Lies { valid: (0, 0), ..TRUTH },
        Lies { opened: |opened| opened.down = 0, ..TRUTH },
        Lies { early: true, ..TRUTH },
        Lies { receipt_key: 1, ..TRUTH },
        Lies { receipt: |receipt| receipt.capture[0] ^= 1, ..TRUTH },
        Lies { body: |body, _| body.response.hidden = 0, ..TRUTH },
    ];
    for (number, lies) in lies.into_iter().enumerate() {
        let lying = LyingAttestor::start(&setup, lies).await;
        let prover = setup.prover_to(lying.address.clone());
        prover.attest(order(&setup), &ignore_progress).await.unwrap_err();
        assert_eq!(lying.has_reveal(), number == 5, "{number}");
        none_in(&lying.told(), &format!("the messages to attestor {number}"));
    }
}
