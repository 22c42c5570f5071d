//! No structural mutant of a proof, and no other bytes instead of one, are accepted or panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The proofs to mutate are computed before the time limit of an input starts.
fuzz_target!(init: attestation::zk::refuse(&[0]), |bytes: &[u8]| attestation::zk::refuse(bytes));
