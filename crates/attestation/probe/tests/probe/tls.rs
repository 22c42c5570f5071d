//! What a probe says of handshakes and certificates.

use std::net::TcpListener;

use domain::workflow::AttestMode;
use probe::{
    AlpnOutcome, DEADLINE, ExchangeOutcome, HANDSHAKE_TIMEOUT, ModeAssessment, Observations, Offer,
    OfferOutcome, ProbeError, ProbeReport, assessments,
};
use rustls::{
    CipherSuite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    },
    NamedGroup,
    version::{TLS12, TLS13},
};
use tokio::time::Instant;

use crate::server::{OpensslServer, URL, run, serve};

#[tokio::test]
async fn a_server_that_offers_everything_can_be_attested_in_every_mode() {
    let observed = serve(|_| ()).await.probe().await;
    for assessment in assessments(&observed) {
        assert!(assessment.can_be_attested, "{assessment:?}");
        assert!(assessment.warnings[0].contains("is not public"), "{assessment:?}");
    }
    for offers in [&observed.versions, &observed.suites, &observed.groups] {
        assert_eq!(accepted(offers).len(), offers.len(), "{offers:?}");
    }
    assert_eq!(accepted(&observed.versions), ["TLS 1.2", "TLS 1.3"]);
    assert_eq!((observed.alpn, observed.hello_retry_request), (AlpnOutcome::Selected, Some(false)));
    let certificate = observed.certificate.unwrap();
    assert_eq!((certificate.error, certificate.length), (None, 1));
    assert_eq!(certificate.names, ["platform.test"]);
}

#[tokio::test]
async fn suites_other_than_chacha_can_only_be_revealed() {
    let suites = [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384];
    let names = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];
    for (suite, name) in suites.into_iter().zip(names) {
        let server = serve(|it| it.suites = Some(vec![suite])).await;
        let observed = server.probe().await;
        assert_eq!(accepted(&observed.suites), [name]);
        let reason = format!(
            "no common cipher suite: the attestation needs TLS_CHACHA20_POLY1305_SHA256; the server offers {name}"
        );
        assert_eq!(reasons(&observed), [vec![reason.clone()], vec![reason], vec![]]);
        let report = ProbeReport::new(observed);
        assert!(report.can_be_attested(None));
        assert!(report.can_be_attested(Some(AttestMode::FullReveal)));
        assert!(!report.can_be_attested(Some(AttestMode::ZktlsFull)));
    }
}

#[tokio::test]
async fn chacha_alone_suffices() {
    let observed =
        serve(|it| it.suites = Some(vec![TLS13_CHACHA20_POLY1305_SHA256])).await.probe().await;
    assert_eq!(accepted(&observed.suites), ["TLS_CHACHA20_POLY1305_SHA256"]);
    assert_eq!(accepted(&observed.versions), ["TLS 1.3"]);
    assert_eq!(reasons(&observed), vec![Vec::<String>::new(); 3]);
}

#[tokio::test]
async fn a_server_without_x25519_cannot_be_attested() {
    for (group, name) in
        [(NamedGroup::secp256r1, "secp256r1"), (NamedGroup::secp384r1, "secp384r1")]
    {
        let observed = serve(|it| it.groups = Some(vec![group])).await.probe().await;
        assert_eq!(accepted(&observed.groups), [name]);
        assert_eq!(observed.hello_retry_request, Some(true), "the first key share is of X25519");
        let reason = format!(
            "no common key exchange group: the attestation needs X25519; the server offers {name}"
        );
        for reasons in reasons(&observed) {
            assert_eq!(reasons, std::slice::from_ref(&reason));
        }
        assert!(
            matches!(observed.exchange, ExchangeOutcome::Response(_)),
            "it was read all the same"
        );
    }
}

#[tokio::test]
async fn tls12_alone_cannot_be_attested() {
    let observed = serve(|it| it.versions = vec![&TLS12]).await.probe().await;
    assert_eq!(accepted(&observed.versions), ["TLS 1.2"]);
    let tried = observed.suites.iter().chain(&observed.groups);
    assert!(tried.into_iter().all(|offer| offer.outcome == OfferOutcome::NotTried));
    for reasons in reasons(&observed) {
        assert_eq!(
            reasons,
            ["no common version of TLS: the attestation needs TLS 1.3; the server offers TLS 1.2"]
        );
    }
    assert!(matches!(observed.exchange, ExchangeOutcome::Response(_)));
}

#[tokio::test]
async fn the_protocol_has_to_be_selected() {
    for (protocols, outcome, part) in [
        (vec![], AlpnOutcome::NotSelected, "the server selects none"),
        (vec!["h2"], AlpnOutcome::Refused, "the server refuses it"),
    ] {
        let observed = serve(|it| it.protocols = protocols).await.probe().await;
        assert_eq!(observed.alpn, outcome);
        for reasons in reasons(&observed) {
            assert!(reasons.len() == 1 && reasons[0].ends_with(part), "{reasons:?}");
        }
        assert!(matches!(observed.exchange, ExchangeOutcome::Response(_)));
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_refused_by_the_rules_themselves() {
    let observed = serve(|it| it.asks_for_certificate = true).await.probe().await;
    for reasons in reasons(&observed) {
        assert_eq!(
            reasons,
            ["the rules of the attestation refuse the connection: the server's flight does not \
              consist of the four required messages"]
        );
    }
}

#[tokio::test]
async fn nothing_is_requested_of_a_server_whose_certificate_is_not_valid() {
    let trusted = |expired, name| async move {
        let server = serve(|it| (it.is_expired, it.name) = (expired, name)).await;
        server.probe().await
    };
    let unknown = run(URL, &[], &[], serve(|_| ()).await.address).await.unwrap();
    for (observed, part) in [
        (trusted(true, "platform.test").await, "expired"),
        (trusted(false, "other.test").await, "the certificate is for other names"),
        (unknown, "the chain does not lead to a trusted root"),
    ] {
        let error = observed.certificate.clone().unwrap().error.unwrap();
        assert!(error.contains(part), "{error}");
        let not_sent = ExchangeOutcome::NotSent("the certificate is not valid".into());
        assert_eq!(observed.exchange, not_sent);
        assert_eq!(accepted(&observed.suites).len(), 3, "handshakes go on");
        for reasons in reasons(&observed) {
            let reason = "the attestation needs a valid certificate for the host: ";
            assert!(reasons.len() == 1 && reasons[0].starts_with(reason), "{reasons:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let error = run(URL, &[], &[], address).await.unwrap_err();
    assert!(matches!(error, ProbeError::Unreachable { .. }), "{error}");
    let target = probe::ProbeTarget::parse(URL, &[]).unwrap();
    let error = probe::ServerProbe::new(target, &[], Some("\u{1b}:x".into())).unwrap().run().await;
    assert_eq!(error.unwrap_err().to_string(), "`\\u{1b}:x` resolves to no address");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_handshake_is_an_error() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = Instant::now();
    let error = run(URL, &[], &[], silent.local_addr().unwrap()).await.unwrap_err();
    assert!(matches!(error, ProbeError::Unanswered(_)), "{error}");
    let waited = start.elapsed();
    assert!(waited >= HANDSHAKE_TIMEOUT && waited < DEADLINE, "{waited:?}");
}

#[tokio::test]
async fn something_other_than_tls_is_refused() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            use tokio::io::AsyncWriteExt as _;
            let _ = stream.write_all(b"HTTP/1.1 400 \x1b[2J\r\n\r\n").await;
        }
    });
    let observed = run(URL, &[], &[], address).await.unwrap();
    assert_eq!(accepted(&observed.versions), [""; 0]);
    for reasons in reasons(&observed) {
        let version = "no common version of TLS: the attestation needs TLS 1.3; the server offers none \
                       that was tried";
        assert_eq!(reasons, [version]);
    }
    let text = ProbeReport::new(observed).to_text();
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn openssl_is_probed_like_other_servers() {
    let suite = ["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384", "-groups", "P-384"];
    let Some(server) = OpensslServer::start(&[&suite[..], &["-alpn", "http/1.1"]].concat()).await
    else {
        return;
    };
    let url = "https://platform.test/me.json";
    let observed = run(url, &[], std::slice::from_ref(&server.root), server.address).await.unwrap();
    assert_eq!(accepted(&observed.versions), ["TLS 1.3"]);
    assert_eq!(accepted(&observed.suites), ["TLS_AES_256_GCM_SHA384"]);
    assert_eq!(accepted(&observed.groups), ["secp384r1"]);
    assert_eq!((observed.alpn, observed.hello_retry_request), (AlpnOutcome::Selected, Some(true)));
    let ExchangeOutcome::Response(response) = observed.exchange else { panic!("no response") };
    assert_eq!((response.http_version.as_str(), response.status), ("HTTP/1.0", 200));
}

#[tokio::test]
async fn tls13_alone_needs_no_older_version() {
    let observed = serve(|it| it.versions = vec![&TLS13]).await.probe().await;
    assert_eq!(accepted(&observed.versions), ["TLS 1.3"]);
    assert!(assessments(&observed).iter().all(|assessment| assessment.can_be_attested));
}

fn accepted(offers: &[Offer]) -> Vec<&str> {
    let accepted = offers.iter().filter(|offer| offer.outcome == OfferOutcome::Accepted);
    accepted.map(|offer| offer.name.as_str()).collect()
}

/// Returns the reasons of each mode: full, request, full reveal.
fn reasons(observed: &Observations) -> Vec<Vec<String>> {
    assessments(observed).into_iter().map(|ModeAssessment { reasons, .. }| reasons).collect()
}
