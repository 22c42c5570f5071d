//! Malformed and oversized requests: each is refused with its status in the error body, and memory
//! use stays flat.

use std::{fmt::Write as _, time::Duration};

use acceptance::{database::Kind, service::Deployment};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const CREATE: &str = "POST /v1/partner/browser-session";

/// A request apart from its API key, and the status expected for it.
struct MalformedRequest {
    what: &'static str,
    line: String,
    headers: String,
    body: Vec<u8>,
    expected: u16,
}

fn table() -> Vec<MalformedRequest> {
    let mut table = Vec::new();
    let mut add = |what, line: &str, headers: &str, body: &[u8], expected| {
        let (line, headers, body) = (line.to_owned(), headers.to_owned(), body.to_vec());
        table.push(MalformedRequest { what, line, headers, body, expected });
    };
    bodies(&mut add);
    paths(&mut add);
    table
}

type Add<'a> = &'a mut dyn FnMut(&'static str, &str, &str, &[u8], u16);

fn bodies(add: Add<'_>) {
    let order = r#"{"platformId":1,"location":{"country":"US"}"#;
    let with = |member: &str| format!("{order},{member}}}").into_bytes();
    add("no JSON", CREATE, "", b"platformId=1", 400);
    add("truncated JSON", CREATE, "", b"{\"platformId\":", 400);
    add("nothing", CREATE, "", b"", 400);
    add("an array", CREATE, "", b"[]", 400);
    add("a number", CREATE, "", b"1", 400);
    add("invalid UTF-8", CREATE, "", b"{\"platformId\":1,\"x\":\"\xff\xfe\"}", 400);
    add("a lone surrogate", CREATE, "", &with(r#""externalReferenceId":"\ud800""#), 400);
    add("NUL", CREATE, "", &with(r#""externalReferenceId":"a\u0000b""#), 400);
    add("deep nesting", CREATE, "", "[".repeat(60_000).as_bytes(), 400);
    add(
        "a huge number",
        CREATE,
        "",
        b"{\"platformId\":1e999,\"location\":{\"country\":\"US\"}}",
        400,
    );
    add(
        "a huge integer",
        CREATE,
        "",
        b"{\"platformId\":99999999999999999999,\"location\":{}}",
        400,
    );
    add("a fraction", CREATE, "", b"{\"platformId\":1.5,\"location\":{\"country\":\"US\"}}", 400);
    add("a negative number", CREATE, "", &with(r#""expiresInHours":-1"#), 400);
    add("a number as a string", CREATE, "", &with(r#""expiresInHours":"24""#), 400);
    add("an object for a string", CREATE, "", &with(r#""externalReferenceId":{}"#), 400);
    add("a string for a flag", CREATE, "", &with(r#""generateAttestation":"true""#), 400);
    let long = format!(r#""externalReferenceId":"{}""#, "x".repeat(256));
    add("a long string", CREATE, "", &with(&long), 400);
    let mut many = String::from(r#""receiverData":{"metadata":{"#);
    for number in 0..1000 {
        let comma = if number == 0 { "" } else { "," };
        write!(many, "{comma}\"m{number}\":\"v\"").expect("writing to a string succeeds");
    }
    many.push_str("}}");
    add("many members", CREATE, "", &with(&many), 400);
    add("a large body", CREATE, "", &vec![b' '; 70_000], 413);
    add("a form", CREATE, "content-type: application/x-www-form-urlencoded\r\n", b"a=b", 415);
    add("plain text", CREATE, "content-type: text/plain\r\n", b"{}", 415);
    add("another encoding", CREATE, "content-encoding: gzip\r\n", b"\x1f\x8b\x08\x00", 400);
    add("a long key", CREATE, &format!("idempotency-key: {}\r\n", "k".repeat(300)), b"{}", 400);
}

fn paths(add: Add<'_>) {
    let get = |path: &str| format!("GET /v1/partner/{path}");
    add("no uuid", &get("browser-session/1"), "", b"", 404);
    add("an escaped path", &get("browser-session/%00%ff"), "", b"", 404);
    add("the parent", &get("browser-session/..%2f..%2fetc"), "", b"", 404);
    add("a limit of 0", &get("browser-sessions?limit=0"), "", b"", 400);
    add("a huge limit", &get("browser-sessions?limit=99999999999999999999"), "", b"", 400);
    add("a negative offset", &get("browser-sessions?offset=-1"), "", b"", 400);
    add("no number", &get("browser-sessions?limit=ten"), "", b"", 400);
    add("a limit twice", &get("browser-sessions?limit=1&limit=2"), "", b"", 400);
    add("an unknown status", &get("browser-sessions?status=DONE%00"), "", b"", 400);
    add("a region alone", &get("supported-countries?region=%ff"), "", b"", 400);
    for (method, path) in [("PUT", "browser-session"), ("PATCH", "browser-sessions")] {
        add("a wrong method", &format!("{method} /v1/partner/{path}"), "", b"", 405);
    }
    add("an invented method", "BREW /v1/partner/browser-sessions", "", b"", 405);
    add("no such path", &get("browser-session-s"), "", b"", 404);
    add("no such version", "GET /v2/partner/browser-sessions", "", b"", 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_refused_with_the_error_body_and_memory_stays_flat() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let table = table();
    for malformed in &table {
        let (status, body) = send(&deployment, malformed).await;
        assert_eq!(status, malformed.expected, "{}: {body}", malformed.what);
        assert_eq!(body["statusCode"], malformed.expected, "{}: {body}", malformed.what);
        for member in ["message", "code", "docUrl"] {
            let text = body[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{}: no {member} in {body}", malformed.what);
        }
    }
    // After the warm-up, further rounds must not increase the resident memory.
    for _ in 0..20 {
        round(&deployment, &table).await;
    }
    let before = deployment.resident_kib();
    for _ in 0..100 {
        round(&deployment, &table).await;
    }
    let after = deployment.resident_kib();
    assert!(after < before + 8 * 1024, "{before} KiB became {after} KiB");
}

async fn round(deployment: &Deployment, table: &[MalformedRequest]) {
    for malformed in table {
        send(deployment, malformed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_body_times_out_and_an_endless_head_is_refused() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let head = format!(
        "{CREATE} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        deployment.api_key
    );
    let (status, body) = exchange(&deployment, head.as_bytes()).await;
    assert_eq!((status, &body["statusCode"]), (408, &408.into()));

    let mut endless = b"GET / HTTP/1.1\r\n".to_vec();
    for number in 0..20_000 {
        endless.extend(format!("x-{number}: {}\r\n", "y".repeat(40)).bytes());
    }
    let (status, _) = exchange(&deployment, &endless).await;
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(deployment.partner.get("browser-sessions").await.status, 200);
}

/// Bytes that are no HTTP request are refused by the parser, before anything that could write the
/// error body: the response has a status, no body, and the connection is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_http_gets_a_status_and_a_closed_connection() {
    let deployment = Deployment::start(Kind::Sqlite).await;
    let long_target = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(200_000));
    let requests: &[(&str, &[u8], u16)] = &[
        ("a TLS ClientHello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        ("an unknown version", b"GET / HTTP/9.9\r\nhost: x\r\n\r\n", 400),
        ("no version", b"GET /v1/health\r\n\r\n", 400),
        ("a header without a colon", b"GET / HTTP/1.1\r\nhost x\r\n\r\n", 400),
        ("a NUL in a header", b"GET / HTTP/1.1\r\nhost: x\x00\r\n\r\n", 400),
        ("a folded header", b"GET / HTTP/1.1\r\nhost: x\r\n y\r\n\r\n", 400),
        ("two lengths", b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        ("a negative length", b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        ("an endless request target", long_target.as_bytes(), 431),
    ];
    for (what, request, expected) in requests {
        let address = deployment.setting("AVOUCH_LISTEN").expect("an address");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let end = stream.read_to_end(&mut answer);
        // A reset after the response is how unread bytes end a connection.
        let _ =
            tokio::time::timeout(Duration::from_secs(60), end).await.expect("a closed connection");
        let text = String::from_utf8_lossy(&answer).to_lowercase();
        assert!(text.starts_with(&format!("http/1.1 {expected} ")), "{what}: {text:?}");
        assert!(text.contains("\r\ncontent-length: 0\r\n"), "{what}: {text:?}");
    }
    assert_eq!(deployment.partner.get("browser-sessions").await.status, 200);
}

async fn send(deployment: &Deployment, malformed: &MalformedRequest) -> (u16, Value) {
    let MalformedRequest { line, headers, body, .. } = malformed;
    let json =
        if headers.contains("content-type") { "" } else { "content-type: application/json\r\n" };
    let mut request = format!(
        "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {}\r\n{json}{headers}\
         content-length: {}\r\n\r\n",
        deployment.api_key,
        body.len()
    )
    .into_bytes();
    request.extend(body);
    exchange(deployment, &request).await
}

/// Sends bytes and reads one response.
async fn exchange(deployment: &Deployment, request: &[u8]) -> (u16, Value) {
    let address = deployment.setting("AVOUCH_LISTEN").expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // The service may respond and close the connection before everything was sent.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    let (mut head, mut length) = (None, 0);
    while head.is_none_or(|head| answer.len() < head + length) {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut part)).await;
        match read.expect("an answer within 30 s") {
            Ok(0) | Err(_) => break,
            Ok(count) => answer.extend(&part[..count]),
        }
        let text = String::from_utf8_lossy(&answer);
        if let Some(end) = text.find("\r\n\r\n") {
            head = Some(end + 4);
            let lower = text[..end].to_lowercase();
            let stated = lower.split("content-length: ").nth(1).unwrap_or_default();
            length = stated.lines().next().unwrap_or_default().parse().unwrap_or(0);
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let body = text.split("\r\n\r\n").nth(1).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}
