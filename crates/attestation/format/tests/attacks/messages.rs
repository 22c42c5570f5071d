//! Attacks on request and response: ambiguous HTTP and JSON.

use attestation::{
    ExaminationError,
    http::{request::RequestError, response::ResponseError},
    json::JsonError,
};

use crate::{
    forge::Inner,
    setup::{Session, Setup, descriptor, request, request_with},
};

const JSON: &str = "{\"user\":{\"id\":\"a\",\"verified\":true}}";

fn asked(request: &[u8]) -> Result<(), RequestError> {
    let session = Setup::default().play();
    let session = session.with(|parts| parts.client = data(request));
    match session.examine() {
        Ok(_) => Ok(()),
        Err(ExaminationError::Request(bad)) => Err(bad),
        Err(other) => panic!("{other}"),
    }
}

fn answered(response: &[u8]) -> Result<Vec<(String, String)>, ExaminationError> {
    let session = Setup::default().play();
    let session = session.with(|parts| parts.server = data(response));
    session.examine().map(|found| found.claims)
}

fn data(bytes: &[u8]) -> Vec<Inner> {
    let records = bytes.chunks(1000).map(|chunk| Inner::new(23, chunk));
    records.chain([Inner::new(21, &[1, 0])]).collect()
}

fn refused(response: &str) -> ResponseError {
    match answered(response.as_bytes()) {
        Err(ExaminationError::Response(bad)) => bad,
        other => panic!("{other:?} for {response:?}"),
    }
}

fn unread(body: &str) -> JsonError {
    match answered(counted(body).as_bytes()) {
        Err(ExaminationError::Body(bad)) => bad,
        other => panic!("{other:?} for {body:?}"),
    }
}

fn counted(body: &str) -> String {
    with_headers(&format!("Content-Length: {}\r\n", body.len()), body)
}

fn with_headers(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}\r\n{body}")
}

fn chunked(body: &str) -> String {
    with_headers("Transfer-Encoding: chunked\r\n", body)
}

/// Attack 23.
#[test]
fn a_second_request_is_refused() {
    asked(&request()).unwrap();
    let two = [request(), request()].concat();
    assert_eq!(asked(&two), Err(RequestError::TrailingBytes));
    let other = b"GET /evil HTTP/1.1\r\nHost: platform.test\r\n\r\n".to_vec();
    assert_eq!(asked(&[other.clone(), request()].concat()), Err(RequestError::Prefix));
    assert_eq!(asked(&[request(), other].concat()), Err(RequestError::TrailingBytes));
    assert_eq!(asked(&[request(), b"x".to_vec()].concat()), Err(RequestError::TrailingBytes));
}

/// Attack 24.
#[test]
fn requests_that_are_read_in_two_ways_are_refused() {
    let headers = |text: &str| asked(&request_with(text));
    let not_allowed = |name: &str| Err(RequestError::NotAllowed(name.into()));
    assert_eq!(headers("Content-Length: 5\r\n"), not_allowed("content-length"));
    assert_eq!(headers("Transfer-Encoding: chunked\r\n"), not_allowed("transfer-encoding"));
    assert_eq!(headers("X-Original-URL: /evil\r\n"), not_allowed("x-original-url"));
    assert_eq!(headers("X-HTTP-Method-Override: PUT\r\n"), not_allowed("x-http-method-override"));
    assert_eq!(headers("X-Forwarded-For: 1.2.3.4\r\n"), not_allowed("x-forwarded-for"));
    assert_eq!(headers("Host: other.test\r\n"), not_allowed("host"));
    assert_eq!(headers("Range: bytes=0-3\r\n"), not_allowed("range"));
    assert_eq!(
        headers("Cookie: a\r\nCOOKIE: b\r\n"),
        Err(RequestError::Duplicate("cookie".into()))
    );
    assert_eq!(headers("Cookie : a\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Coo kie: a\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Cookie:a\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Cookie: a\nHost: evil\r\n"), Err(RequestError::Header), "a bare LF");
    assert_eq!(headers("Cookie: a\rb\r\n"), Err(RequestError::Header), "a bare CR");
    assert_eq!(headers("Cookie: a\r\n folded: b\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Cookie: a\0b\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Cookie: a\tb\r\n"), Err(RequestError::Header));
    assert_eq!(headers("Cookie: \u{e4}\r\n"), Err(RequestError::Header));
    assert_eq!(headers(": a\r\n"), Err(RequestError::Header));
    let text = String::from_utf8(request()).unwrap();
    let changed = |from: &str, to: &str| asked(text.replacen(from, to, 1).as_bytes());
    for (from, to) in [
        ("GET", "POST"),
        ("GET ", "GET  "),
        ("/api/v1/me", "https://platform.test/api/v1/me"),
        ("HTTP/1.1", "HTTP/1.0"),
        ("Host: platform.test", "Host: other.test"),
        ("Host: platform.test", "host: platform.test"),
        ("Connection: close\r\n", ""),
        ("identity", "gzip"),
        ("GET", "\r\nGET"),
    ] {
        assert_eq!(changed(from, to), Err(RequestError::Prefix), "{from} to {to}");
    }
    assert_eq!(asked(&request()[..request().len() - 2]), Err(RequestError::Line));
    let long = format!("Cookie: {}\r\n", "a".repeat(65 * 1024));
    assert_eq!(headers(&long), Err(RequestError::TooLong));
}

/// Attack 27.
#[test]
fn responses_that_are_not_exactly_one_are_refused() {
    answered(counted(JSON).as_bytes()).unwrap();
    let status = |line: &str| refused(&counted(JSON).replacen("HTTP/1.1 200 OK", line, 1));
    for code in ["206", "304", "100", "103", "302", "404", "500"] {
        assert_eq!(status(&format!("HTTP/1.1 {code} X")), ResponseError::Status(code.into()));
    }
    for line in ["HTTP/1.0 200 OK", "HTTP/2 200", "HTTP/1.1  200 OK", "HTTP/1.1 20", "ICY 200 OK"] {
        assert_eq!(status(line), ResponseError::StatusLine, "{line}");
    }
    assert_eq!(refused(&(counted(JSON) + &counted(JSON))), ResponseError::TrailingBytes);
    assert_eq!(refused(&(counted(JSON) + "x")), ResponseError::TrailingBytes);
    assert_eq!(refused(&counted(JSON)[..100]), ResponseError::Truncated);
    assert_eq!(refused(&with_headers("", JSON)), ResponseError::Length);
    let both = "Content-Length: 35\r\nTransfer-Encoding: chunked\r\n";
    assert_eq!(refused(&with_headers(both, JSON)), ResponseError::Length);
    let twice = "Content-Length: 35\r\nContent-Length: 36\r\n";
    assert_eq!(
        refused(&with_headers(twice, JSON)),
        ResponseError::Duplicate("content-length".into())
    );
    for length in ["+35", "0x23", "35, 35", "-1", "", "99999999999"] {
        let headers = format!("Content-Length: {length}\r\n");
        assert_eq!(refused(&with_headers(&headers, JSON)), ResponseError::Length, "{length}");
    }
    for header in [
        "X : a",
        " folded",
        "X\u{1}: a",
        "no colon",
        "X: a\u{0}b",
        ": a",
        "X: a\nY: b",
        "X: a\n",
        "X: a\r",
        "X: a\u{c}",
        "X: \na",
        "X: \u{c}a",
        "X:\nY: b",
        "X: \r",
        "X: a\n\n",
    ] {
        let headers = format!("{header}\r\nContent-Length: {}\r\n", JSON.len());
        assert_eq!(refused(&with_headers(&headers, JSON)), ResponseError::Line, "{header:?}");
    }
}

/// Every prefix of a response is distinguished from an invalid one, so that the prover knows when
/// it is complete; the end of the connection is irrelevant.
#[test]
fn a_response_says_itself_where_it_ends() {
    let length = JSON.len();
    let in_chunks = chunked(&format!("{length:x}\r\n{JSON}\r\n0\r\n\r\n"));
    for whole in [counted(JSON), in_chunks] {
        for length in 0..whole.len() {
            assert_eq!(
                refused(&whole[..length]),
                ResponseError::Truncated,
                "{length} of {whole:?}"
            );
        }
        answered(whole.as_bytes()).unwrap();
    }
}

/// Finding 3: a response that is revealed must contain no credentials.
#[test]
fn responses_with_credentials_are_refused() {
    for name in ["Set-Cookie", "set-cookie2", "Authentication-Info", "WWW-Authenticate"] {
        let headers = format!("{name}: sid=1\r\nContent-Length: {}\r\n", JSON.len());
        let refused = refused(&with_headers(&headers, JSON));
        assert_eq!(refused, ResponseError::Credentials(name.to_ascii_lowercase()));
    }
}

/// Attack 28.
#[test]
fn chunks_are_read_in_one_way_alone() {
    let (one, two) = JSON.split_at(20);
    let whole = format!("{:x}\r\n{one}\r\n{:X}\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let claims = answered(chunked(&whole).as_bytes()).unwrap();
    assert_eq!(claims[0].1, "\"a\"", "a claim may span two chunks");
    let length = JSON.len();
    for broken in [
        format!("{length:x};a=b\r\n{JSON}\r\n0\r\n\r\n"),
        format!("{length:09x}\r\n{JSON}\r\n0\r\n\r\n"),
        format!(" {length:x}\r\n{JSON}\r\n0\r\n\r\n"),
        format!("0x{length:x}\r\n{JSON}\r\n0\r\n\r\n"),
        format!("{:x}\r\n{JSON}\r\n0\r\n\r\n", length - 1),
        format!("{length:x}\r\n{JSON}\r\n0\r\nTrailer: a\r\n\r\n"),
        format!("{length:x}\r\n{JSON}\r\n-0\r\n\r\n"),
    ] {
        assert_eq!(refused(&chunked(&broken)), ResponseError::Chunk, "{broken:?}");
    }
    let cut = format!("{length:x}\r\n{JSON}\r\n");
    assert_eq!(refused(&chunked(&cut)), ResponseError::Truncated);
    assert_eq!(refused(&chunked("ffffffff\r\n")), ResponseError::Truncated);
    assert_eq!(refused(&chunked(&format!("{whole}x"))), ResponseError::TrailingBytes);
    let headers = "Transfer-Encoding: gzip, chunked\r\n";
    assert_eq!(refused(&with_headers(headers, &whole)), ResponseError::Length);
}

/// Attack 29, and 30: text that a page echoes stays text.
#[test]
fn bodies_are_read_in_one_way_alone() {
    let encoded = |coding: &str| {
        let headers = format!("Content-Encoding: {coding}\r\nContent-Length: {}\r\n", JSON.len());
        refused(&with_headers(&headers, JSON))
    };
    assert_eq!(encoded("gzip"), ResponseError::Encoded);
    assert_eq!(encoded("br"), ResponseError::Encoded);
    for other in [
        "text/html",
        "application/json; charset=utf-16",
        "application/jsonp",
        "application/json; a=b",
    ] {
        let text = counted(JSON).replacen("application/json", other, 1);
        assert_eq!(refused(&text), ResponseError::ContentType, "{other}");
    }
    for body in [
        "\u{feff}{\"user\":{\"id\":\"a\",\"verified\":true}}",
        "{\"user\":{\"id\":\"a\",\"id\":\"b\",\"verified\":true}}",
        "{\"user\":{\"id\":\"a\",\"\\u0069d\":\"b\",\"verified\":true}}",
        "{\"user\":{\"id\":\"a\",\"verified\":true}} {}",
        "{'user':{}}",
        "{\"user\":{\"id\":\"a\",\"verified\":true},}",
        "{\"user\":{\"id\":NaN}}",
        "{\"user\":{\"id\":1e999}}",
    ] {
        assert!(matches!(unread(body), JsonError::Text(_)), "{body}");
    }
    let deep = format!("{}1{}", "[".repeat(65), "]".repeat(65));
    assert!(matches!(unread(&deep), JsonError::Text(_)), "nested too deeply");
    assert!(matches!(unread("{\"id\":\"a\"}"), JsonError::Missing(_)), "at another pointer");
    assert!(matches!(unread("{\"user\":{\"id\":{\"x\":1}}}"), JsonError::Compound(_)));
    let number =
        answered(counted("{\"user\":{\"id\":7,\"verified\":\"true\"}}").as_bytes()).unwrap();
    assert_eq!((number[0].1.as_str(), number[1].1.as_str()), ("7", "\"true\""), "types are kept");
    // Finding 10: a number keeps its literal text, and is not rounded to the nearest double.
    for number in [
        "66620000000000000000000001945661757",
        "18446744073709551617",
        "-9223372036854775809",
        "9007199254740993",
        "0.1",
        "1.10",
        "1.0",
        "1",
        "-0",
        "1E+2",
        "0.30000000000000000000000000001",
        "1e-400",
    ] {
        let body = format!("{{\"user\":{{\"id\":{number},\"verified\": {number} }}}}");
        let claims = answered(counted(&body).as_bytes()).unwrap();
        assert_eq!([claims[0].1.as_str(), claims[1].1.as_str()], [number; 2]);
    }
    for number in ["1e400", "-1e400", "01", "1.", ".5", "+1", "0x1", "1e"] {
        let body = format!("{{\"user\":{{\"id\":{number},\"verified\":true}}}}");
        assert!(matches!(unread(&body), JsonError::Text(_)), "{number}");
    }
    let echo = "{\"echo\":\"\\\",\\\"user\\\":{\\\"id\\\":\\\"evil\\\"}\",\"user\":{\"id\":\"a\",\"verified\":true}}";
    assert_eq!(answered(counted(echo).as_bytes()).unwrap()[0].1, "\"a\"");
    let not_utf8 = [with_headers("Content-Length: 4\r\n", "").as_bytes(), b"\"\xff\xfe\""].concat();
    assert!(matches!(answered(&not_utf8), Err(ExaminationError::Body(JsonError::Text(_)))));
}

/// Attack 43: the maximum size of a connection, and more.
#[test]
fn there_is_an_end_to_what_is_read() {
    let body = format!("\"{}\"", "a".repeat(1024 * 1024));
    assert_eq!(refused(&counted(&body)), ResponseError::TooLong);
    let head = format!("X: {}\r\nContent-Length: 2\r\n", "a".repeat(70 * 1024));
    assert_eq!(refused(&with_headers(&head, "{}")), ResponseError::TooLong);
    let session: Session = Setup::default().play();
    session.examine_as(&descriptor()).unwrap();
}
