//! The hidden parts of a JSON body depend on its visible bytes only, and the declared values are
//! those of the complete body.
#![no_main]

use attestation::{
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    http::{
        RedactedBytes,
        selective::{hidden_parts, read},
    },
    json,
};
use libfuzzer_sys::fuzz_target;
use std::ops::Range;

fuzz_target!(|input: (Vec<String>, &[u8])| {
    let (pointers, body) = input;
    let claims = pointers.into_iter().take(8).enumerate();
    let claim = |(at, pointer): (usize, String)| ClaimDescriptor { field: at.to_string(), pointer };
    let descriptor = Descriptor {
        platform: 1,
        version: 1,
        host: "a.test".into(),
        target: "/".into(),
        headers: vec![],
        values: std::collections::BTreeMap::new(),
        hidden: vec![],
        content_type: "application/json".into(),
        modes: vec![RevealMode::ZktlsFull],
        claims: claims.map(claim).collect(),
    };
    if descriptor.check().is_err() {
        return;
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
    let bytes = [format!("{head}{}\r\n\r\n", body.len()).as_bytes(), body].concat();
    let Ok(hidden) = hidden_parts(&bytes, &descriptor) else { return };
    let ranges: Vec<Range<usize>> = hidden.iter().map(|part| part.range.clone()).collect();
    let mut seen = bytes.clone();
    for part in &hidden {
        assert!(bytes[part.range.clone()].iter().all(|byte| part.class.contains(*byte)));
        seen[part.range.clone()].fill(0);
    }
    let found = read(RedactedBytes { bytes: &seen, hidden: &ranges }, &descriptor)
        .expect("it is the only disclosure");
    assert_eq!(found.hidden, hidden);
    // If all of the body can be parsed, each claim is the value at its pointer.
    let Ok(whole) = json::read(body) else { return };
    for (claim, (_, value)) in descriptor.claims.iter().zip(&found.claims) {
        let read = json::read(value.as_bytes()).expect("a value");
        assert_eq!(whole.pointer(&claim.pointer), Some(&read));
    }
});
