//! For any response and any hidden parts: an accepted disclosure, with hidden bytes that can be
//! proved to belong to their classes, is the only one.
#![no_main]

use std::ops::Range;

use attestation::{
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    http::{
        RedactedBytes,
        selective::{HiddenBytes, hidden_parts, read},
    },
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<(u8, u8, u8)>, Vec<u8>, &[u8])| {
    let (framing, edits, headers, body) = input;
    let claim = |field: &str, pointer: &str| ClaimDescriptor {
        field: field.into(),
        pointer: pointer.into(),
    };
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
        claims: vec![claim("a", "/a"), claim("b", "/b/0")],
    };
    let bytes = framed(framing, &headers, body);
    let own = hidden_parts(&bytes, &descriptor);
    let own: Result<Vec<Range<usize>>, _> =
        own.map(|own| own.into_iter().map(|part| part.range).collect());
    let mut hidden = own.clone().unwrap_or_default();
    for edit in edits.iter().take(6) {
        change(&mut hidden, *edit);
    }
    hidden.retain(|range| range.start < range.end && range.end <= bytes.len());
    hidden.sort_by_key(|range| range.start);
    if hidden.windows(2).any(|pair| pair[0].end >= pair[1].start) {
        return;
    }
    let Ok(found) = read(RedactedBytes { bytes: &bytes, hidden: &hidden }, &descriptor) else {
        assert_ne!(own, Ok(hidden), "the only disclosure is accepted");
        return;
    };
    assert!(found.hidden.iter().map(|part| &part.range).eq(&hidden));
    let fits = |part: &HiddenBytes| {
        bytes[part.range.clone()].iter().all(|byte| part.class.contains(*byte))
    };
    // Some responses are refused as a whole for a reason that may be hidden: a DEL in a header, an
    // invalid code of an escape.
    if let (true, Ok(own)) = (found.hidden.iter().all(fits), own) {
        assert_eq!(own, hidden);
    }
});

/// Returns a response with a correct length, in one piece or in chunks; or exactly the given bytes.
fn framed(framing: u8, headers: &[u8], body: &[u8]) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".as_slice();
    match framing {
        0 => [headers, body].concat(),
        1..64 => {
            let length = format!("Content-Length: {}\r\n", body.len());
            [head, length.as_bytes(), headers, b"\r\n", body].concat()
        }
        _ => {
            let start = [head, b"Transfer-Encoding: chunked\r\n", headers, b"\r\n"].concat();
            let chunks = body.chunks(usize::from(framing - 63)).map(|chunk| {
                [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
            });
            let chunks: Vec<_> = chunks.collect();
            [start, chunks.concat(), b"0\r\n\r\n".to_vec()].concat()
        }
    }
}

/// Moves an end of a hidden range, or removes or adds a range.
fn change(hidden: &mut Vec<Range<usize>>, (how, which, by): (u8, u8, u8)) {
    let at = usize::from(which).checked_rem(hidden.len()).unwrap_or_default();
    let by = usize::from(by);
    match (how % 7, hidden.get_mut(at)) {
        (0, Some(range)) => range.start = range.start.saturating_sub(by % 9),
        (1, Some(range)) => range.start += by % 9,
        (2, Some(range)) => range.end += by % 9,
        (3, Some(range)) => range.end = range.end.saturating_sub(by % 9),
        (4, Some(_)) => drop(hidden.remove(at)),
        (5, Some(range)) => {
            let middle = range.start + by;
            let rest = middle + 1..range.end;
            range.end = range.end.min(middle);
            hidden.push(rest);
        }
        _ => hidden.push(usize::from(which) * 2..usize::from(which) * 2 + by % 9),
    }
}
