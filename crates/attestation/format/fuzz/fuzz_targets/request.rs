//! An accepted request has one prefix, one end, and hidden parts in values only.
#![no_main]

use attestation::{
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    http::{RedactedBytes, request::read},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Vec<(u16, u16)>)| {
    let (rest, parts) = input;
    let descriptor = Descriptor {
        platform: 1,
        version: 1,
        host: "a.test".into(),
        target: "/me".into(),
        headers: vec!["a".into(), "cookie".into()],
        hidden: vec!["cookie".into()],
        values: std::collections::BTreeMap::new(),
        content_type: "application/json".into(),
        modes: vec![RevealMode::ZktlsRequest],
        claims: vec![ClaimDescriptor { field: "id".into(), pointer: "/id".into() }],
    };
    let prefix = b"GET /me HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
        Accept-Encoding: identity\r\n";
    let mut bytes = [prefix.as_slice(), rest].concat();
    let mut hidden = vec![];
    for (start, length) in parts {
        let (start, length) = (usize::from(start), usize::from(length) + 1);
        let after = hidden.last().is_none_or(|last: &std::ops::Range<usize>| last.end < start);
        if after && start + length <= bytes.len() {
            bytes[start..start + length].fill(0);
            hidden.push(start..start + length);
        }
    }
    let Ok(request) = read(RedactedBytes { bytes: &bytes, hidden: &hidden }, &descriptor) else {
        return;
    };
    assert!(bytes.ends_with(b"\r\n\r\n"));
    assert_eq!(request.hidden.len(), hidden.len());
    assert!(request.hidden.iter().all(|part| part.header == "cookie"));
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    assert!(text.matches("\r\ncookie: ").count() <= 1 && text.matches("\r\na: ").count() <= 1);
    assert_eq!(text.matches("\r\n\r\n").count(), 1);
});
