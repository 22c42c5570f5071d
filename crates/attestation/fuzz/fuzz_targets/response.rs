//! Any bytes give a response or a refusal, and its body a value or a refusal; what is read of a
//! body is read the same when it is written again.
#![no_main]

use attestation::{descriptor::Mode, http::response::read, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(response) = read(bytes, "application/json", Mode::ZktlsFull) {
        assert!(response.body.len() <= bytes.len() && response.head_length <= bytes.len());
    }
    let Ok(value) = json::read(bytes) else { return };
    let again = json::read(value.to_string().as_bytes()).expect("what was written can be read");
    assert_eq!(again, value);
});
