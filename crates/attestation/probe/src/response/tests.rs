//! Responses in parts, in pieces and with defects.

use proptest::prelude::*;

use super::*;

#[test]
fn a_response_is_complete_where_its_framing_says_so() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    for (rest, framing, body) in [
        ("Content-Length: 2\r\n\r\n{}", BodyFraming::ContentLength, 2),
        ("Content-Length: 0\r\n\r\n", BodyFraming::ContentLength, 0),
        (
            "Transfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
            BodyFraming::Chunked,
            2,
        ),
        ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n", BodyFraming::Chunked, 2),
    ] {
        let text = format!("{json}{rest}");
        for step in [1, 7, text.len()] {
            let mut reader = ResponseReader::default();
            let mut parts = text.as_bytes().chunks(step).peekable();
            while let Some(part) = parts.next() {
                assert!(!reader.is_over(), "{rest} ended early");
                reader.push(part);
                assert!(parts.peek().is_none() || !reader.is_over(), "{rest}");
            }
            assert!(reader.is_complete(), "{rest} in steps of {step}");
            let read = observed(reader);
            assert_eq!((read.framing, read.body_bytes), (framing, body), "{rest}");
            assert_eq!(read.json == JsonSyntax::Valid, body == 2, "{rest}");
            assert_eq!(read.total_bytes, text.len());
        }
    }
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut reader = ResponseReader::default();
    reader.push(b"HTTP/1.0 200 OK\r\n\r\n[1]");
    assert!(!reader.is_over());
    reader.end(Completeness::Truncated);
    let read = observed(reader);
    assert_eq!((read.framing, read.json), (BodyFraming::Close, JsonSyntax::Valid));
    assert_eq!(
        (read.completeness, read.http_version.as_str()),
        (Completeness::Complete, "HTTP/1.0")
    );
}

#[test]
fn lengths_that_contradict_are_ambiguous() {
    for headers in [
        "Content-Length: 2\r\nContent-Length: 2",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Content-Length: -2",
        "Transfer-Encoding: gzip, chunked",
    ] {
        let read = read(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{{}}"));
        assert_eq!(read.framing, BodyFraming::Ambiguous, "{headers}");
        assert_eq!(read.completeness, Completeness::Truncated, "{headers}");
    }
}

#[test]
fn neither_values_of_cookies_nor_queries_of_redirects_are_kept() {
    let read = read(
        "HTTP/1.1 302 Found\r\nLocation: https://a.example/sign-in?state=SECRET#SECRET\r\n\
         Set-Cookie: sid=SECRET; Path=/\r\nSet-Cookie: SECRET\r\nset-cookie: =SECRET\r\n\
         Set-Cookie2: x=SECRET\r\nWWW-Authenticate: SECRET\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(read.cookies, ["sid", "(without a name)", "(without a name)"]);
    assert_eq!(read.credential_headers, ["set-cookie", "set-cookie2", "www-authenticate"]);
    assert_eq!(read.location.as_deref(), Some("https://a.example/sign-in"));
    assert!(!format!("{read:?}").contains("SECRET"));
    assert_eq!(location(b"https://u:SECRET@a.example/"), "(an address with a user)");
}

#[test]
fn texts_are_bounded_and_escaped() {
    let many = "Set-Cookie: a=b\r\n".repeat(1000);
    let long = "b".repeat(5000);
    let read = read(&format!(
        "HTTP/1.1 200 OK\r\nContent-Type: a\u{1b}[2J{long}\r\nContent-Encoding: \u{7}\r\n{many}\r\n"
    ));
    let content_type = read.content_type.unwrap();
    assert!(content_type.starts_with("a\\u{1b}[2Jb"), "{content_type}");
    assert_eq!(content_type.chars().count(), 201);
    assert_eq!(read.content_encoding.as_deref(), Some("\\u{7}"));
    assert_eq!(read.cookies.len(), MAX_NAMES);
}

#[test]
fn what_is_too_long_is_not_read() {
    let mut reader = ResponseReader::default();
    reader.push(b"HTTP/1.1 200 OK\r\nX: ");
    for _ in 0..MAX_HEAD_BYTES / 16 {
        reader.push(&[b'a'; 16]);
    }
    assert!(reader.is_over() && reader.bytes.len() <= MAX_HEAD_BYTES + 32);
    let why = reader.observed(0, ConnectionEnd::Open).unwrap_err();
    assert_eq!(why, "the headers of the response are longer than 65536 bytes");
    let mut reader = ResponseReader::default();
    reader.push(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n");
    while !reader.is_over() {
        reader.push(&[b'a'; 16 * 1024]);
    }
    let read = observed(reader);
    assert_eq!(read.completeness, Completeness::TooLong);
    assert_eq!(read.total_bytes, MAX_RESPONSE_BYTES + 1);
}

#[test]
fn the_missing_response_is_explained() {
    for (text, end, why) in [
        ("", Completeness::Truncated, "without a response"),
        ("HTTP/1.1 200", Completeness::Truncated, "within the headers"),
        ("HTTP/1.1 200", Completeness::TimedOut, "in time"),
        ("SSH-2.0\r\n\r\n", Completeness::Truncated, "HTTP/1.x"),
        ("HTTP/2 200\r\n\r\n", Completeness::Truncated, "HTTP/1.x"),
    ] {
        let mut reader = ResponseReader::default();
        reader.push(text.as_bytes());
        reader.end(end);
        let refused = reader.observed(0, ConnectionEnd::Closed).unwrap_err();
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_an_end_of_the_process(
        start in "(HTTP/1.1 200 OK\r\n(Transfer-Encoding: chunked\r\n|Content-Length: 3\r\n)?)?",
        parts: Vec<Vec<u8>>,
    ) {
        let mut reader = ResponseReader::default();
        reader.push(start.as_bytes());
        for part in &parts {
            reader.push(part);
        }
        reader.end(Completeness::Truncated);
        let _ = reader.observed(0, ConnectionEnd::Closed);
    }
}

fn read(text: &str) -> ResponseObserved {
    let mut reader = ResponseReader::default();
    reader.push(text.as_bytes());
    reader.end(Completeness::Truncated);
    observed(reader)
}

fn observed(reader: ResponseReader) -> ResponseObserved {
    reader.observed(100, ConnectionEnd::CloseNotify).unwrap()
}
