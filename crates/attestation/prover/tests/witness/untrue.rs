//! The prover compares the attestor's messages with its own knowledge: each lie ends the attempt,
//! and lies before the receipt end it before a secret is revealed.

use attestation::{
    attest::Disclosure,
    body::Body,
    commitment::{Opening, OpeningKind},
    protocol::AttestorMessage,
};
use domain::workflow::AttestMode;
use ports::attestor::{AttestError, AttestationOrder, Attestor as _};

use crate::{
    ignore_progress,
    lying::{Lies, LyingAttestor, TRUTH},
    setup::{Setup, response},
};

async fn setup() -> Setup {
    let setting = (vec![AttestMode::FullReveal], response(200, r#"{"id":"acct-1","name":"Ada"}"#));
    Setup::with(|setup| {
        (setup.modes, setup.response_bytes) = setting;
        setup.fields = vec![("accountId", "/id"), ("name", "/name")];
    })
    .await
}

async fn attest(
    setup: &Setup,
    lies: Lies,
) -> (Result<serde_json::Value, AttestError>, LyingAttestor) {
    let lying = LyingAttestor::start(setup, lies).await;
    let order = AttestationOrder { challenge: vec![7; 8], ..setup.order() };
    let prover = setup.prover_to(lying.address.clone());
    let attested = prover.attest(order, &ignore_progress).await;
    (attested.map(|attested| attested.values["accountId"].clone()), lying)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lies_before_the_receipt_end_the_attempt_before_the_reveal() {
    let now = attestor::now();
    let day = 24 * 60 * 60 * 1000;
    let cases: Vec<(&str, Lies)> = vec![
        ("not valid now", Lies { valid: (0, now - day), ..TRUTH }),
        ("not valid now", Lies { valid: (now + day, u64::MAX), ..TRUTH }),
        ("not valid now", Lies { valid: (u64::MAX, 0), ..TRUTH }),
        ("allows no time", Lies { opened: |opened| opened.time = 0, ..TRUTH }),
        ("allows no time", Lies { opened: |opened| opened.proving = 0, ..TRUTH }),
        ("allows no time", Lies { opened: |opened| opened.examining = 0, ..TRUTH }),
        ("or no bytes", Lies { opened: |opened| opened.up = 0, ..TRUTH }),
        ("or no bytes", Lies { opened: |opened| opened.down = 0, ..TRUTH }),
        ("fewer bytes", Lies { opened: |opened| opened.up = 100, ..TRUTH }),
        ("fewer bytes", Lies { opened: |opened| opened.down = 100, ..TRUTH }),
        ("not allowed in this state", Lies { early: true, ..TRUTH }),
        ("its receipt has an invalid signature", Lies { receipt_key: 1, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.id[0] ^= 1, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.capture[0] ^= 1, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.client_length += 1, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.server_length = 0, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.address.push(0), ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.opened = receipt.closed + 1, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.opened -= 86_400_000, ..TRUTH }),
        ("its receipt", Lies { receipt: |receipt| receipt.closed += 86_400_000, ..TRUTH }),
    ];
    let setup = setup().await;
    for (why, lies) in cases {
        let (refused, lying) = attest(&setup, lies).await;
        let refused = refused.unwrap_err();
        let ended = matches!(
            &refused,
            AttestError::Untrue(text) | AttestError::Attestor(text) if text.contains(why)
        );
        assert!(ended, "{why}: {refused}");
        assert!(!lying.has_reveal(), "{why}: a secret was revealed");
        for secret in setup.secrets.all() {
            assert!(!lying.told().windows(secret.len()).any(|part| part == secret), "{why}");
        }
    }
}

type Change = fn(&mut Body, &mut Disclosure);

/// Changes that describe another connection, or an impossible one.
const CHANGES: &[(&str, Change)] = &[
    ("another connection", |body, _| body.id[0] ^= 1),
    ("another connection", |body, _| body.session[0] ^= 1),
    ("another connection", |body, _| body.partner[0] ^= 1),
    ("another connection", |body, _| body.challenge[0] ^= 1),
    ("another connection", |body, _| body.challenge.clear()),
    ("its attempt number is zero", |body, _| body.attempt = 0),
    ("its times", |body, _| body.time.opened -= 1),
    ("its times", |body, _| body.time.closed += 1),
    ("its times", |body, _| body.time.signed = body.time.closed - 1),
    ("its times", |body, _| body.time.signed += 86_400_000),
    ("its server address differs", |body, _| body.server.address = vec![192, 0, 2, 1]),
    ("differs from the signed body", |body, _| body.mode = 1),
    ("differs from the signed body", |body, _| body.mode = 2),
    ("differs from the signed body", |body, _| body.descriptor.platform += 1),
    ("differs from the signed body", |body, _| body.descriptor.version += 1),
    ("differs from the signed body", |body, _| body.descriptor.sha256[0] ^= 1),
    ("differs from the signed body", |body, _| body.server.name = "other.test".into()),
    ("differs from the signed body", |body, _| body.server.port = 444),
    ("differs from the signed body", |body, _| body.tls.version -= 1),
    ("differs from the signed body", |body, _| body.tls.suite ^= 1),
    ("differs from the signed body", |body, _| body.tls.group += 1),
    ("differs from the signed body", |body, _| body.tls.scheme += 1),
    ("differs from the signed body", |body, _| body.tls.leaf_key_sha256[0] ^= 1),
    ("differs from the signed body", |body, _| body.tls.chain_sha256[0] ^= 1),
    ("differs from the signed body", |body, _| body.tls.transcript[0] ^= 1),
    ("differs from the signed body", |body, _| body.capture.client_length += 1),
    ("differs from the signed body", |body, _| body.capture.server_length += 1),
    ("differs from the signed body", |body, _| body.capture.sha256[0] ^= 1),
    ("differs from the signed body", |body, _| body.request.method = "POST".into()),
    ("differs from the signed body", |body, _| body.request.target.push('/')),
    ("differs from the signed body", |body, _| body.request.length += 1),
    ("differs from the signed body", |body, _| {
        let header = "cookie".into();
        body.request.hidden.push(attestation::body::HiddenHeaderPart {
            start: 0,
            length: 1,
            header,
        });
    }),
    ("do not match the signed roots", |body, _| body.request.root[0] ^= 1),
    ("differs from the signed body", |body, _| body.response.status = 201),
    ("differs from the signed body", |body, _| body.response.content_type.push('x')),
    ("differs from the signed body", |body, _| body.response.head_length += 1),
    ("differs from the signed body", |body, _| body.response.body_length += 1),
    ("differs from the signed body", |body, _| body.response.hidden += 1),
    ("do not match the signed roots", |body, _| body.response.root[0] ^= 1),
    ("differs from the signed body", |body, _| body.proof.system = "none".into()),
    ("differs from the signed body", |body, _| body.proof.sha256[0] ^= 1),
    ("are not supported", |body, _| body.version = 1),
    ("are not supported", |body, _| body.algorithm = 2),
    ("its key is not trusted", |body, _| body.issuer[0] ^= 1),
    ("another index in the log", |body, _| body.log.index = 1),
    ("differs from the signed body", |body, _| body.claims[0].field = "other".into()),
    ("differs from the signed body", |body, _| body.claims[0].pointer = "/name".into()),
    ("does not match its commitment", |body, _| body.claims.swap(0, 1)),
    // The same with the opening: the values of two fields are swapped.
    ("differs from the signed body", |body, disclosure| {
        body.claims.swap(0, 1);
        for opening in claims(disclosure) {
            opening.index = 1 - opening.index;
        }
        body.claims = commitments(body, disclosure);
    }),
    ("disclosed values differ", |body, disclosure| {
        let values = claims(disclosure).map(|opening| opening.value.clone()).collect::<Vec<_>>();
        for (opening, value) in claims(disclosure).zip(values.into_iter().rev()) {
            opening.value = value;
        }
        body.claims = commitments(body, disclosure);
    }),
    ("disclosed values differ", |body, disclosure| {
        claims(disclosure).for_each(|opening| opening.value = b"\"acct-2\"".to_vec());
        body.claims = commitments(body, disclosure);
    }),
    ("does not match its commitment", |body, _| {
        body.claims.pop();
    }),
    ("differs from the signed body", |body, disclosure| {
        body.claims.pop();
        disclosure.openings.pop();
    }),
    ("does not open its claims", |_, disclosure| {
        disclosure.openings.pop();
    }),
    ("does not open its claims", |_, disclosure| disclosure.openings.clear()),
    ("do not match the signed roots", |_, disclosure| {
        disclosure.response.pop();
    }),
    ("does not match its commitment", |_, disclosure| disclosure.openings[0].value.push(b' ')),
];

fn claims(disclosure: &mut Disclosure) -> impl Iterator<Item = &mut Opening> {
    disclosure.openings.iter_mut().filter(|opening| opening.kind == OpeningKind::Claim)
}

/// Returns the claims of a body, with commitments to their openings.
fn commitments(body: &Body, disclosure: &mut Disclosure) -> Vec<attestation::body::AttestedClaim> {
    let mut all = body.claims.clone();
    for opening in claims(disclosure) {
        all[usize::try_from(opening.index).unwrap()].commitment = opening.commitment();
    }
    all
}

/// F9: each of these would otherwise be stored as an attestation that verifiers refuse because of
/// its evidence.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attestation_that_contradicts_the_prover_is_untrue() {
    let setup = setup().await;
    let (values, _) = attest(&setup, TRUTH).await;
    assert_eq!(values.unwrap(), "acct-1", "without a lie it is accepted");
    let changes = CHANGES.iter().map(|(why, body)| (*why, Lies { body: *body, ..TRUTH }));
    let others = [
        ("its key is not trusted", Lies { key: 1, ..TRUTH }),
        ("does not start as a tlog-proof", Lies { inclusion: |_| vec![], ..TRUTH }),
        ("the entry is not in the tree", Lies { entry: |_| [0; 32], ..TRUTH }),
        (
            "the proof has no checkpoint",
            Lies {
                inclusion: |proof| {
                    let text = String::from_utf8(proof).unwrap();
                    text.split("\n\n").next().unwrap().into()
                },
                ..TRUTH
            },
        ),
    ];
    for (number, (why, lies)) in changes.chain(others).enumerate() {
        let (refused, _) = attest(&setup, lies).await;
        let refused = refused.map(|value| format!("{number}, {why}: {value}")).unwrap_err();
        let untrue = matches!(&refused, AttestError::Untrue(text) if text.contains(why));
        assert!(untrue, "{number}, {why}: {refused}");
    }
}

/// F12: the attestor's last message is text for people and of any length, so it is truncated.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_attestors_last_message_is_truncated() {
    let setup = setup().await;
    let last = |_| AttestorMessage::Refused(format!("a\r\nb\u{1b}[2J{}", "c".repeat(1_000_000)));
    let (refused, _) = attest(&setup, Lies { last, ..TRUTH }).await;
    let AttestError::Refused(why) = refused.unwrap_err() else { panic!("it is another error") };
    let bounded = format!("ab[2J{}", "c".repeat(295));
    assert!(why == bounded, "it has {} bytes", why.len());
}
