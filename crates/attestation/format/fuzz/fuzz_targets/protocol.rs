//! Messages between prover and attestor, and evidence: encoding a decoded value gives the same
//! bytes.
#![no_main]

use attestation::{
    evidence::Evidence,
    protocol::{AttestorMessage, ProverMessage},
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = ProverMessage::read(bytes) {
        assert_eq!(message.write().as_deref(), Ok(bytes));
    }
    if let Ok(message) = AttestorMessage::read(bytes) {
        assert_eq!(message.write().as_deref(), Ok(bytes));
    }
    if let Ok(evidence) = Evidence::read(bytes) {
        assert_eq!(evidence.write().as_deref(), Ok(bytes));
        let _ = evidence.descriptor();
    }
});
