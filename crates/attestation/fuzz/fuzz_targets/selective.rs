//! Of any response, whatever is hidden: what is accepted, with hidden bytes that can be proved to be
//! of their classes, is the one disclosure that there is.
#![no_main]

use attestation::{
    descriptor::{Claim, Descriptor, Mode},
    http::{
        Seen,
        selective::{Hidden, read, to_hide},
    },
};
use libfuzzer_sys::fuzz_target;
use std::ops::Range;

fuzz_target!(|input: (bool, Vec<(u8, u8)>, &[u8])| {
    let (with_head, parts, rest) = input;
    let claim = |field: &str, pointer: &str| Claim { field: field.into(), pointer: pointer.into() };
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
        claims: vec![claim("a", "/a"), claim("b", "/b/0")],
    };
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".as_slice();
    let bytes = if with_head { [head, rest].concat() } else { rest.to_vec() };
    // Told by lengths in turn of what is seen and what is hidden; none are what has to be.
    let (mut at, mut hidden) = (0, vec![]);
    for (seen, length) in parts {
        let start = at + usize::from(seen) + usize::from(at > 0);
        at = start + usize::from(length) + 1;
        if at <= bytes.len() {
            hidden.push(start..at);
        }
    }
    let own = to_hide(&bytes, &descriptor);
    let own: Result<Vec<Range<usize>>, _> =
        own.map(|own| own.into_iter().map(|part| part.range).collect());
    if hidden.is_empty() {
        hidden = own.clone().unwrap_or_default();
    }
    let Ok(found) = read(Seen { bytes: &bytes, hidden: &hidden }, &descriptor) else {
        assert_ne!(own, Ok(hidden), "the one disclosure is accepted");
        return;
    };
    assert!(found.hidden.iter().map(|part| &part.range).eq(&hidden));
    let fits = |part: &Hidden| bytes[part.range.clone()].iter().all(|byte| part.class.has(*byte));
    let provable = found.hidden.iter().all(fits);
    // Some are refused as a whole, and nobody sees why where that is hidden: a DEL in a header, a code
    // of an escape that is none.
    if let (true, Ok(own)) = (provable, own) {
        assert_eq!(own, hidden);
    }
});
