//! No structural mutant of a proof, and no bytes in the place of one, are accepted or panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The proofs to mutate are made before the time of an input counts.
fuzz_target!(init: attestation::zk::refuse(&[0]), |bytes: &[u8]| attestation::zk::refuse(bytes));
