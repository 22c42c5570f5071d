//! No structural mutant of a proof, and no bytes in the place of one, are accepted or panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| attestation::zk::refuse(bytes));
