//! Each observation with its assessment.

use AttestMode::{FullReveal, ZktlsFull, ZktlsRequest};
use attestation::http::response::read;
use proptest::prelude::*;

use super::*;
use crate::{
    observation::{AddressObserved, CertificateObserved, ConnectionEnd},
    response::ResponseReader,
};

const ALL: &[AttestMode] = &[ZktlsFull, ZktlsRequest, FullReveal];
const ZKTLS: &[AttestMode] = &[ZktlsFull, ZktlsRequest];
const REVEALED: &[AttestMode] = &[ZktlsRequest, FullReveal];

/// What a change of the observations is, the modes that it prevents, and a part of the reason.
type Case = (fn(&mut Observations), &'static [AttestMode], &'static str);

#[test]
fn a_good_server_can_be_attested_without_a_warning() {
    for assessment in assessments(&good()) {
        assert!(assessment.can_be_attested && assessment.reasons.is_empty(), "{assessment:?}");
        assert_eq!(assessment.warnings, [""; 0]);
    }
    let modes: Vec<_> =
        assessments(&good()).into_iter().map(|assessment| assessment.mode).collect();
    assert_eq!(modes, ALL);
}

#[test]
fn each_defect_of_the_connection_prevents_its_modes() {
    let cases: &[Case] = &[
        (|it| it.url_defects = vec!["the host is odd".into()], ALL, "the host is odd"),
        (
            |it| refuse(&mut it.versions, "TLS 1.3"),
            ALL,
            "no common version of TLS: the attestation needs TLS 1.3; the server offers TLS 1.2",
        ),
        (|it| refuse(&mut it.versions, "TLS 1.2"), &[], ""),
        (
            |it| refuse(&mut it.suites, "TLS_CHACHA20_POLY1305_SHA256"),
            ZKTLS,
            "no common cipher suite: the attestation needs TLS_CHACHA20_POLY1305_SHA256; the server \
             offers TLS_AES_128_GCM_SHA256",
        ),
        (|it| refuse(&mut it.suites, "TLS_AES_128_GCM_SHA256"), &[], ""),
        (
            |it| {
                it.suites.iter_mut().for_each(|it| it.outcome = OfferOutcome::Refused("no".into()));
            },
            ALL,
            "the server offers none that was tried",
        ),
        (
            |it| it.suites[1].outcome = OfferOutcome::Unanswered,
            ZKTLS,
            "whether the server accepts TLS_CHACHA20_POLY1305_SHA256 is not known",
        ),
        (
            |it| it.suites[1].outcome = OfferOutcome::NotTried,
            ZKTLS,
            "whether the server accepts TLS_CHACHA20_POLY1305_SHA256 is not known",
        ),
        (
            |it| refuse(&mut it.groups, "X25519"),
            ALL,
            "no common key exchange group: the attestation needs X25519; the server offers secp256r1",
        ),
        (|it| refuse(&mut it.groups, "secp256r1"), &[], ""),
        (|it| it.hello_retry_request = Some(true), &[], ""),
        (|it| it.alpn = AlpnOutcome::NotSelected, ALL, "the server selects none"),
        (|it| it.alpn = AlpnOutcome::Refused, ALL, "the server refuses it"),
        (
            |it| certificate(it).error = Some("expired".into()),
            ALL,
            "certificate for the host: expired",
        ),
        (|it| certificate(it).length = 8, &[], ""),
        (|it| certificate(it).length = 9, ALL, "8 certificates at most; the server sends 9"),
        (
            |it| it.exchange = ExchangeOutcome::NotSent("late".into()),
            ALL,
            "needs a response, and none was requested: late",
        ),
        (
            |it| it.exchange = ExchangeOutcome::NoResponse("cut".into()),
            ALL,
            "needs a response: cut",
        ),
    ];
    check(cases);
}

#[test]
fn each_defect_of_the_response_prevents_its_modes() {
    let cases: &[Case] = &[
        (|it| response(it).http_version = "HTTP/1.0".into(), ALL, "answers with HTTP/1.0"),
        (|it| response(it).status = 204, ALL, "the server answers 204"),
        (|it| response(it).status = 302, ALL, "the server answers 302"),
        (
            |it| (response(it).status, response(it).location) = (302, Some("/in".into())),
            ALL,
            "a redirect to /in: if that is its sign-in page",
        ),
        (|it| response(it).location = Some("/in".into()), &[], ""),
        (|it| response(it).content_type = None, ALL, "the server sends none"),
        (
            |it| response(it).content_type = Some("text/json".into()),
            ALL,
            "the server sends text/json",
        ),
        (
            |it| response(it).content_type = Some("application/json; charset=latin1".into()),
            ALL,
            "charset=latin1",
        ),
        (
            |it| response(it).content_type = Some("Application/JSON ; charset=\"UTF-8\"".into()),
            &[],
            "",
        ),
        (|it| response(it).content_encoding = Some("br".into()), ALL, "the server sends br"),
        (|it| response(it).content_encoding = Some("identity".into()), &[], ""),
        (|it| response(it).json = JsonSyntax::Invalid("odd".into()), ALL, "a body of JSON: odd"),
        (|it| response(it).shortest_value = None, ALL, "the body has none"),
        (|it| response(it).framing = BodyFraming::Chunked, &[], ""),
        (|it| response(it).framing = BodyFraming::Close, ALL, "it ends with the connection"),
        (|it| response(it).framing = BodyFraming::Ambiguous, ALL, "it is stated in two ways"),
        (|it| response(it).completeness = Completeness::TooLong, ALL, "1048576 bytes at most"),
        (|it| response(it).completeness = Completeness::Truncated, ALL, "before the response did"),
        (|it| response(it).completeness = Completeness::TimedOut, ALL, "did not end in time"),
        (|it| response(it).completeness = Completeness::Malformed("bad".into()), ALL, "; bad"),
        (
            |it| response(it).credential_headers = vec!["set-cookie".into()],
            REVEALED,
            "without credentials; the server sends set-cookie",
        ),
        (|it| response(it).cookies = vec!["a".into()], &[], ""),
        (|it| response(it).end = ConnectionEnd::Closed, &[], ""),
        (|it| response(it).end = ConnectionEnd::Open, &[], ""),
        (
            |it| response(it).total_bytes = MAX_PROVED_BYTES - 99,
            &[ZktlsFull],
            "9600 bytes together",
        ),
        (|it| response(it).total_bytes = MAX_PROVED_BYTES - 100, &[], ""),
    ];
    check(cases);
}

#[test]
fn the_rules_of_the_attestation_have_the_last_word() {
    let refused = |mode: usize, why: ExaminedMode| {
        let mut observations = good();
        observations.examined[mode].1 = why;
        assessments(&observations).remove(mode)
    };
    for (mode, name) in ALL.iter().enumerate() {
        for (why, part) in [
            (ExaminedMode::ConnectionRefused("late".into()), "refuse the connection: late"),
            (ExaminedMode::ResponseRefused("odd".into()), "refuse the response: odd"),
            (ExaminedMode::TooLong, "they are too long"),
        ] {
            let assessment = refused(mode, why);
            assert!(!assessment.can_be_attested && assessment.mode == *name);
            assert!(
                assessment.reasons.len() == 1 && assessment.reasons[0].contains(part),
                "{assessment:?}"
            );
        }
    }
    let unexamined = Observations { examined: vec![], ..good() };
    assert!(assessments(&unexamined).iter().all(|assessment| !assessment.can_be_attested));
    let mut explained = good();
    explained.examined[0].1 = ExaminedMode::ConnectionRefused("late".into());
    explained.alpn = AlpnOutcome::NotSelected;
    assert_eq!(assessments(&explained)[0].reasons.len(), 1, "what explains it is enough");
}

#[test]
fn a_server_that_asks_to_sign_in_is_no_refusal() {
    for status in [401, 403] {
        let mut observations = good();
        *response(&mut observations) = ResponseObserved {
            status,
            content_type: None,
            json: JsonSyntax::Unknown,
            framing: BodyFraming::Close,
            credential_headers: vec!["www-authenticate".into()],
            ..response(&mut observations).clone()
        };
        for examined in &mut observations.examined {
            examined.1 = ExaminedMode::ResponseRefused("its status is 401, not 200".into());
        }
        for assessment in assessments(&observations) {
            assert!(assessment.can_be_attested, "{assessment:?}");
            assert!(
                assessment.warnings[0].contains(&format!("answers {status}")),
                "{assessment:?}"
            );
        }
        observations.examined[0].1 = ExaminedMode::ConnectionRefused("late".into());
        assert!(!assessments(&observations)[0].can_be_attested);
        observations.alpn = AlpnOutcome::Refused;
        assert!(assessments(&observations).iter().all(|assessment| !assessment.can_be_attested));
    }
}

#[test]
fn warnings_prevent_nothing() {
    let private = Observations {
        address: AddressObserved { socket_address: "10.0.0.1:443".into(), is_public: false },
        ..good()
    };
    let mut large = good();
    (response(&mut large).request_bytes, response(&mut large).total_bytes) = (8000, 100);
    for (observations, part, modes) in
        [(private, "10.0.0.1:443 is not public", ALL), (large, "leaves about", ZKTLS)]
    {
        for assessment in assessments(&observations) {
            assert!(assessment.can_be_attested, "{assessment:?}");
            let has_warning = assessment.warnings.iter().any(|warning| warning.contains(part));
            assert_eq!(has_warning, modes.contains(&assessment.mode), "{assessment:?}");
        }
    }
}

proptest! {
    /// What an attestor accepts is never reported as refused.
    #[test]
    fn an_accepted_response_has_no_reason(
        status in prop::sample::select(vec!["HTTP/1.1 200 OK", "HTTP/1.1 200", "HTTP/1.1 404 No", "HTTP/1.0 200 OK"]),
        headers in prop::collection::vec(prop::sample::select(vec![
            "Content-Type: application/json", "content-type:\tapplication/json;charset=UTF-8",
            "Content-Type: text/html", "Content-Length: 9", "Content-Length: 8", "CONTENT-LENGTH:9 ",
            "Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "Content-Encoding: identity",
            "Content-Encoding: gzip", "Set-Cookie: a=b", "X: y", "Location: /",
        ]), 0..4),
        body in prop::sample::select(vec![
            r#"{"a":123}"#, r#"{"a":12}"#, "9\r\n{\"a\":123}\r\n0\r\n\r\n",
            "4\r\n{\"a\"\r\n5\r\n:123}\r\n0\r\n\r\n", "",
        ]),
    ) {
        let lines = headers.join("\r\n");
        let end = if headers.is_empty() { "" } else { "\r\n" };
        let text = format!("{status}\r\n{lines}{end}\r\n{body}");
        let mut reader = ResponseReader::default();
        reader.push(text.as_bytes());
        reader.end(Completeness::Truncated);
        let observed = reader.observed(100, ConnectionEnd::CloseNotify);
        for mode in MODES {
            if read(text.as_bytes(), CONTENT_TYPE, reveal_mode(mode)).is_ok() {
                let reasons = observed.as_ref().map(|observed| response_reasons(observed, mode));
                prop_assert_eq!(reasons, Ok(vec![]), "{}", text);
            }
        }
    }
}

/// Checks that each change prevents its modes, each for one reason, and no other.
fn check(cases: &[Case]) {
    for (at, (change, modes, part)) in cases.iter().enumerate() {
        let mut observations = good();
        change(&mut observations);
        for assessment in assessments(&observations) {
            let is_prevented = modes.contains(&assessment.mode);
            assert_eq!(assessment.can_be_attested, !is_prevented, "case {at}: {assessment:?}");
            assert_eq!(
                assessment.reasons.len(),
                usize::from(is_prevented),
                "case {at}: {assessment:?}"
            );
            assert!(
                assessment.reasons.iter().all(|it| it.contains(part)),
                "case {at}: {assessment:?}"
            );
        }
    }
}

fn good() -> Observations {
    let accepted = |names: &[&str]| {
        let offer = |name: &&str| Offer { name: (*name).into(), outcome: OfferOutcome::Accepted };
        names.iter().map(offer).collect()
    };
    Observations {
        url: "https://a.example/".into(),
        address: AddressObserved { socket_address: "203.0.114.1:443".into(), is_public: true },
        url_defects: vec![],
        versions: accepted(&["TLS 1.2", "TLS 1.3"]),
        suites: accepted(&["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]),
        groups: accepted(&["X25519", "secp256r1"]),
        hello_retry_request: Some(false),
        alpn: AlpnOutcome::Selected,
        certificate: Some(CertificateObserved { error: None, length: 3, names: vec![] }),
        exchange: ExchangeOutcome::Response(Box::new(ResponseObserved {
            status: 200,
            http_version: "HTTP/1.1".into(),
            content_type: Some("application/json".into()),
            content_encoding: None,
            json: JsonSyntax::Valid,
            shortest_value: Some("/id".into()),
            framing: BodyFraming::ContentLength,
            head_bytes: 300,
            body_bytes: 100,
            total_bytes: 400,
            request_bytes: 100,
            completeness: Completeness::Complete,
            cookies: vec![],
            credential_headers: vec![],
            location: None,
            end: ConnectionEnd::CloseNotify,
        })),
        examined: MODES.map(|mode| (mode, ExaminedMode::Accepted)).to_vec(),
    }
}

fn response(observations: &mut Observations) -> &mut ResponseObserved {
    match &mut observations.exchange {
        ExchangeOutcome::Response(response) => response,
        ExchangeOutcome::NotSent(_) | ExchangeOutcome::NoResponse(_) => panic!("no response"),
    }
}

fn certificate(observations: &mut Observations) -> &mut CertificateObserved {
    observations.certificate.as_mut().unwrap()
}

fn refuse(offers: &mut [Offer], name: &str) {
    let offer = offers.iter_mut().find(|offer| offer.name == name).unwrap();
    offer.outcome = OfferOutcome::Refused("handshake failure".into());
}
