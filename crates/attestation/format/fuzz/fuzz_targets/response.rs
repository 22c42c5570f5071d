//! Arbitrary bytes give a response or an error, and its body a value or an error; a body that is
//! written again has the same value.
#![no_main]

use attestation::{descriptor::RevealMode, http::response::read, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(response) = read(bytes, "application/json", RevealMode::ZktlsFull) {
        assert!(response.body.len() <= bytes.len() && response.head_length <= bytes.len());
    }
    let Ok(value) = json::read(bytes) else { return };
    let again = json::read(value.to_string().as_bytes()).expect("a written value can be parsed");
    assert_eq!(again, value);
});
