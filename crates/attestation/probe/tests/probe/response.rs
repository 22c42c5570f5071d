//! What a probe says of responses.

use probe::{
    BodyFraming, Completeness, ConnectionEnd, ExchangeOutcome, JsonSyntax, ModeAssessment,
    ProbeReport, ResponseObserved, assessments,
};

use crate::server::{Ending, TestServer, response, serve};

const JSON: &str = r#"{"id":"acct-1"}"#;

#[tokio::test]
async fn the_response_is_described() {
    let server = serve(|it| it.response = response("200 OK", "", JSON)).await;
    let (read, assessments) = probe(&server).await;
    assert_eq!((read.status, read.http_version.as_str()), (200, "HTTP/1.1"));
    assert_eq!(read.content_type.as_deref(), Some("application/json"));
    assert_eq!((read.json, read.framing), (JsonSyntax::Valid, BodyFraming::ContentLength));
    assert_eq!((read.completeness, read.end), (Completeness::Complete, ConnectionEnd::CloseNotify));
    assert_eq!(read.body_bytes, JSON.len());
    assert!(assessments.iter().all(|assessment| assessment.can_be_attested), "{assessments:?}");
}

#[tokio::test]
async fn chunks_and_a_connection_without_close_notify_are_attested() {
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n\
         Transfer-Encoding: chunked\r\n\r\nf\r\n{JSON}\r\n0\r\n\r\n"
    );
    for (ending, end) in
        [(Ending::Drop, ConnectionEnd::Closed), (Ending::Stay, ConnectionEnd::Open)]
    {
        let server = serve(|it| (it.response, it.ending) = (chunks.clone().into(), ending)).await;
        let (read, assessments) = probe(&server).await;
        assert_eq!((read.framing, read.end), (BodyFraming::Chunked, end));
        assert!(assessments.iter().all(|assessment| assessment.can_be_attested), "{assessments:?}");
    }
}

#[tokio::test]
async fn every_defect_of_a_response_has_a_reason() {
    for (response, part) in [
        (response("404 Not Found", "", JSON), "needs the status 200; the server answers 404"),
        (
            response("302 Found", "Location: /sign-in?token=SECRET\r\n", JSON),
            "a redirect to /sign-in: if that is",
        ),
        (
            response("200 OK", "Content-Encoding: gzip\r\n", "\u{1f}\u{8b}"),
            "the server sends gzip, although it was asked for identity",
        ),
        (response("200 OK", "", "<html>"), "needs a body of JSON"),
        (response("200 OK", "", "{}"), "the body has none"),
        (response("200 OK", "", r#"{"a":1,"a":2}"#), "key \"a\" occurs twice"),
        (
            text("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}"),
            "the server sends text/html",
        ),
        (text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "the server sends none"),
        (
            text("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}"),
            "it ends with the connection",
        ),
        (
            text(
                "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            ),
            "answers with HTTP/1.0",
        ),
        (
            text(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
            ),
            "the connection ended before the response did",
        ),
        (
            text(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            ),
            "the chunks of the response are malformed",
        ),
        (text("SSH-2.0\r\n\r\n"), "does not answer with a response of HTTP/1.x"),
        (text(""), "closed the connection without a response"),
        (text(&format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(70_000))), "longer than 65536 bytes"),
        // Nothing but the rules themselves knows these.
        (
            text(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n[1]\r\n0\r\n\r\n",
            ),
            "its chunks are malformed, or have extensions or trailers",
        ),
        (response("200 OK", "Content-Type: application/json\r\n", JSON), "occurs twice"),
        (response("200 OK", "X : y\r\n", JSON), "a line is malformed"),
    ] {
        let name = String::from_utf8_lossy(&response[..response.len().min(200)]).into_owned();
        let server = serve(|it| it.response = response).await;
        let report = server.report().await;
        assert!(!report.can_be_attested(None), "{name}");
        let printed = report.to_text();
        let reasons = printed.lines().filter(|line| line.starts_with("  - "));
        assert_eq!(reasons.filter(|line| line.contains(part)).count(), 3, "{name}: {printed}");
        assert!(!printed.contains("SECRET") && !report.to_json().contains("SECRET"), "{printed}");
    }
}

#[tokio::test]
async fn an_endless_body_is_not_read() {
    let endless =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n";
    let response = format!("{endless}{}", " ".repeat(9000));
    let server = serve(|it| (it.response, it.ending) = (response.into(), Ending::Repeat)).await;
    let (read, assessments) = probe(&server).await;
    assert_eq!((read.completeness, read.total_bytes), (Completeness::TooLong, 1024 * 1024 + 1));
    for assessment in assessments {
        assert!(assessment.reasons[0].contains("1048576 bytes at most"), "{assessment:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_never_answered_ends() {
    let server = serve(|it| (it.response, it.ending) = (vec![], Ending::Stay)).await;
    let observed = server.probe().await;
    let why = "the server did not answer the request in time";
    assert_eq!(observed.exchange, ExchangeOutcome::NoResponse(why.into()));
    assert!(observed.groups.iter().all(|it| it.outcome == probe::OfferOutcome::Accepted));
    assert!(assessments(&observed).iter().all(|assessment| assessment.reasons[0].ends_with(why)));
}

#[tokio::test]
async fn a_server_that_asks_to_sign_in_is_a_warning() {
    let challenge = "WWW-Authenticate: Bearer\r\nSet-Cookie: a=SECRET\r\n";
    let texts = [
        response("401 Unauthorized", challenge, JSON),
        text("HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx"),
    ];
    for response in texts {
        let server = serve(|it| it.response = response).await;
        let (_, assessments) = probe(&server).await;
        for assessment in assessments {
            assert!(assessment.can_be_attested, "{assessment:?}");
            assert!(assessment.warnings[1].contains("the probe is signed out"), "{assessment:?}");
        }
    }
}

#[tokio::test]
async fn cookies_are_named_and_refused_where_the_response_is_revealed() {
    let headers = "Set-Cookie: sid=SECRET; HttpOnly\r\nSet-Cookie: t\u{1b}[2Jx=SECRET\r\n";
    let server = serve(|it| it.response = response("200 OK", headers, JSON)).await;
    let (read, assessments) = probe(&server).await;
    assert_eq!(read.cookies, ["sid", "t\\u{1b}[2Jx"]);
    assert_eq!(assessments[0].reasons.len(), 1, "the header has a control character");
    for assessment in &assessments[1..] {
        assert!(assessment.reasons[0].ends_with("the server sends set-cookie"), "{assessment:?}");
    }
    let plain =
        serve(|it| it.response = response("200 OK", "Set-Cookie: sid=SECRET\r\n", JSON)).await;
    let (_, assessments) = probe(&plain).await;
    assert_eq!(
        assessments.iter().map(|it| it.can_be_attested).collect::<Vec<_>>(),
        [true, false, false]
    );
}

#[tokio::test]
async fn no_character_of_the_server_reaches_the_terminal_unescaped() {
    let headers = "Content-Encoding: \u{1b}]0;x\u{7}\r\nLocation: /\u{9b}2J\u{202e}\r\nSet-Cookie: \u{1b}c=1\r\n";
    let body = "{\"\u{1b}\":1,\"\u{202e}\":1,\"\u{202e}\":2}";
    let server = serve(|it| it.response = response("302 \u{1b}[2J", headers, body)).await;
    let report = server.report().await;
    for printed in [report.to_text(), report.to_json()] {
        let odd = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        assert!(!printed.contains(odd), "{printed:?}");
        assert!(printed.contains('x'), "{printed}");
    }
}

#[tokio::test]
async fn neither_given_values_nor_cookies_are_printed() {
    let server =
        serve(|it| it.response = response("200 OK", "Set-Cookie: a=SECRET\r\n", JSON)).await;
    let given = ["Cookie: sid=SECRET", "Authorization: Bearer SECRET"];
    let report = ProbeReport::new(server.probe_with(&given).await);
    assert!(report.can_be_attested(None));
    assert!(!report.to_text().contains("SECRET") && !report.to_json().contains("SECRET"));
}

#[tokio::test]
async fn a_response_that_repeats_a_hidden_value_is_refused_where_it_is_revealed() {
    let body = r#"{"echo":"sid=0123456789","id":7}"#;
    let server = serve(|it| it.response = response("200 OK", "", body)).await;
    let observed = server.probe_with(&["Cookie: sid=0123456789"]).await;
    let assessments = assessments(&observed);
    assert_eq!(
        assessments.iter().map(|it| it.can_be_attested).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert!(assessments[1].reasons[0].contains("a value that must be hidden"), "{assessments:?}");
}

#[tokio::test]
async fn a_proof_has_room_for_few_bytes() {
    let body = |length: usize| format!("{{\"id\":\"{}\"}}", "a".repeat(length));
    for (length, possible, warned) in
        [(1000, true, false), (8000, true, true), (20_000, false, false)]
    {
        let server = serve(|it| it.response = response("200 OK", "", &body(length))).await;
        let (_, assessments) = probe(&server).await;
        let [full, rest @ ..] = assessments.as_slice() else { panic!("there are three modes") };
        assert_eq!(full.can_be_attested, possible, "{full:?}");
        let has_warning = full.warnings.iter().any(|it| it.contains("cookies and user agent"));
        assert_eq!(has_warning, warned, "{full:?}");
        assert!(rest.iter().all(|assessment| assessment.can_be_attested));
    }
}

async fn probe(server: &TestServer) -> (ResponseObserved, Vec<ModeAssessment>) {
    let observed = server.probe().await;
    let assessments = assessments(&observed);
    let ExchangeOutcome::Response(response) = observed.exchange else {
        panic!("no response: {:?}", observed.exchange)
    };
    (*response, assessments)
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}
