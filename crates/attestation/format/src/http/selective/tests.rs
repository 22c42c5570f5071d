//! Tests that a response has exactly one disclosure.

use super::*;

const BODY: &str =
    r#"{"id":"acct-1","n":42,"o":{"id":"x","k":[1,-2.5e3,{}]},"s":"a\n\u00e9b","t":true, "":null}"#;

fn declaring() -> Descriptor {
    let claim = |field: &str, pointer: &str| ClaimDescriptor {
        field: field.into(),
        pointer: pointer.into(),
    };
    Descriptor {
        platform: 1,
        version: 1,
        host: "a.test".into(),
        target: "/me".into(),
        headers: vec![],
        values: std::collections::BTreeMap::new(),
        hidden: vec![],
        content_type: "application/json".into(),
        modes: vec![RevealMode::ZktlsFull],
        claims: vec![claim("id", "/id"), claim("n", "/n")],
    }
}

fn counted() -> Vec<u8> {
    let headers = "Server:  x y \r\nX-A:\t a\tb \t\r\nX-Empty:\r\nX-Spaces:   \r\nX-None:\t\r\n\
                   Content-Type: application/json\r\nSet-Cookie:sid=1; Path=/";
    format!("HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length:  {}\r\n\r\n{BODY}", BODY.len())
        .into_bytes()
}

fn chunked(size: usize) -> Vec<u8> {
    let head = "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nX: a:b: c\r\n\
                Content-Type: application/json;charset=utf-8\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    for chunk in BODY.as_bytes().chunks(size) {
        bytes.extend([format!("{:X}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

fn ranges(hidden: &[HiddenBytes]) -> Vec<Range<usize>> {
    hidden.iter().map(|hidden| hidden.range.clone()).collect()
}

/// Returns what a prover can get accepted: the hidden bytes must be of their classes.
fn accepted(bytes: &[u8], hidden: &[Range<usize>]) -> Option<SelectiveResponse> {
    let found = read(RedactedBytes { bytes, hidden }, &declaring()).ok()?;
    let fits = |hidden: &HiddenBytes| {
        bytes[hidden.range.clone()].iter().all(|byte| hidden.class.contains(*byte))
    };
    found.hidden.iter().all(fits).then_some(found)
}

/// Returns all hidden bytes as ranges.
fn joined(hidden: &[bool]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = vec![];
    for at in (0..hidden.len()).filter(|at| hidden[*at]) {
        match found.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}

#[test]
fn prover_and_attestor_find_the_same_ranges() {
    let whole: Vec<_> = [counted()].into_iter().chain((1..60).map(chunked)).collect();
    for bytes in whole {
        let hidden = hidden_parts(&bytes, &declaring()).unwrap();
        let found = accepted(&bytes, &ranges(&hidden)).unwrap();
        assert_eq!(found.hidden, hidden);
        assert_eq!(found.claims, [("id".into(), "\"acct-1\"".into()), ("n".into(), "42".into())]);
        let seen = String::from_utf8(found.response.body).unwrap().replace('\0', ".");
        let expected = r#"{"id":"acct-1","n":42,"o":{"..":".",".":[.,......,{}]},"s":".\n\u.....","t":...., "":....}"#;
        assert_eq!(seen, expected);
    }
}

/// Hides more or fewer bytes than required: single bytes, ranges, and all of them.
#[test]
fn hiding_other_ranges_is_refused() {
    for bytes in [counted(), chunked(7), chunked(1)] {
        let honest = ranges(&hidden_parts(&bytes, &declaring()).unwrap());
        let mut mask = vec![false; bytes.len()];
        for range in &honest {
            mask[range.clone()].fill(true);
        }
        let refused = |mask: &[bool], what: &str| {
            assert_eq!(accepted(&bytes, &joined(mask)), None, "{what}");
        };
        refused(&vec![false; bytes.len()], "nothing");
        refused(&vec![true; bytes.len()], "everything");
        for at in 0..bytes.len() {
            // One or several bytes: removed from the hidden ones, and added to them.
            for length in 1..40.min(bytes.len() - at) {
                let mut other = mask.clone();
                other[at..at + length].fill(true);
                if other != mask {
                    refused(&other, &format!("{length} bytes more at {at}"));
                }
                let mut other = mask.clone();
                other[at..at + length].fill(false);
                if other != mask {
                    refused(&other, &format!("{length} bytes less at {at}"));
                }
            }
        }
        for at in 0..honest.len() {
            let (mut split, mut twice) = (honest.clone(), honest.clone());
            twice.insert(at, honest[at].clone());
            assert_eq!(accepted(&bytes, &twice), None);
            if honest[at].len() > 1 {
                let middle = honest[at].start + 1;
                split[at].end = middle;
                split.insert(at + 1, middle..honest[at].end);
                assert_eq!(accepted(&bytes, &split), None, "two ranges instead of one");
            }
        }
        let mut outside = honest.clone();
        outside.push(bytes.len()..bytes.len() + 1);
        assert_eq!(accepted(&bytes, &outside), None);
    }
}

/// Responses that are refused when completely visible are refused here.
#[test]
fn ambiguous_responses_are_refused() {
    let fine = String::from_utf8(counted()).unwrap();
    assert!(hidden_parts(fine.as_bytes(), &declaring()).is_ok());
    for (text, other) in [
        ("200 OK", "404 OK"),
        ("X-Empty", "Content-Length"),
        ("X-Empty:", "Content-Length: 1"),
        ("X-Empty", "Content-Encoding"),
        ("X-Empty:", "X Empty:"),
        ("X-Empty:", " x"),
        ("application/json", "text/json"),
        ("\"id\":\"acct-1\"", "\"id\":[\"cct1\"]"),
        ("\"n\":42", "\"m\":42"),
        ("\"n\":42", "\"n\":4}"),
        ("\"s\"", "\"n\""),
        ("\"t\"", "\"id\""),
    ] {
        let changed = fine.replace(text, other);
        assert_ne!(changed, fine);
        assert!(hidden_parts(changed.as_bytes(), &declaring()).is_err(), "{other}");
    }
}

/// Parsing many chunks and many hidden values takes time linear in the length.
#[test]
fn many_chunks_and_values_are_parsed_in_linear_time() {
    let values = format!("{{\"id\":1,\"n\":2,\"l\":[{}1]}}", "1,".repeat(60_000));
    let mut bytes = b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\
                      Content-Type: application/json\r\n\r\n"
        .to_vec();
    for byte in values.bytes() {
        bytes.extend([b"1\r\n", std::slice::from_ref(&byte), b"\r\n"].concat());
    }
    bytes.extend(b"0\r\n\r\n");
    let hidden = ranges(&hidden_parts(&bytes, &declaring()).unwrap());
    assert_eq!(hidden.len(), 60_001);
    assert!(accepted(&bytes, &hidden).is_some());
}
