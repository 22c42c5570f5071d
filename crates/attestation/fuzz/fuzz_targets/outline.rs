//! What is hidden of a JSON body follows from what is seen of it, and what is declared of it is what
//! is read of the whole.
#![no_main]

use attestation::{
    descriptor::{Claim, Descriptor, Mode},
    http::{
        Seen,
        selective::{read, to_hide},
    },
    json,
};
use libfuzzer_sys::fuzz_target;
use std::ops::Range;

fuzz_target!(|input: (Vec<String>, &[u8])| {
    let (pointers, body) = input;
    let claims = pointers.into_iter().take(8).enumerate();
    let claim = |(at, pointer): (usize, String)| Claim { field: at.to_string(), pointer };
    let descriptor = Descriptor {
        platform: 1,
        version: 1,
        host: "a.test".into(),
        target: "/".into(),
        headers: vec![],
        values: std::collections::BTreeMap::new(),
        hidden: vec![],
        content_type: "application/json".into(),
        modes: vec![Mode::ZktlsFull],
        claims: claims.map(claim).collect(),
    };
    if descriptor.check().is_err() {
        return;
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
    let bytes = [format!("{head}{}\r\n\r\n", body.len()).as_bytes(), body].concat();
    let Ok(hidden) = to_hide(&bytes, &descriptor) else { return };
    let ranges: Vec<Range<usize>> = hidden.iter().map(|part| part.range.clone()).collect();
    let mut seen = bytes.clone();
    for part in &hidden {
        assert!(bytes[part.range.clone()].iter().all(|byte| part.class.has(*byte)));
        seen[part.range.clone()].fill(0);
    }
    let found = read(Seen { bytes: &seen, hidden: &ranges }, &descriptor).expect("it is the one");
    assert_eq!(found.hidden, hidden);
    // Where all of it can be read, each claim is what a pointer leads to.
    let Ok(whole) = json::read(body) else { return };
    for (claim, (_, value)) in descriptor.claims.iter().zip(&found.claims) {
        let read = json::read(value.as_bytes()).expect("a value");
        assert_eq!(whole.pointer(&claim.pointer), Some(&read));
    }
});
