//! Worker program for the tests of the prover and the attestor.

use std::process::ExitCode;

fn main() -> ExitCode {
    let work = std::env::args().nth(1).unwrap_or_default();
    if work == attestor::EXAMINER_ARGUMENT { attestor::run_worker() } else { prover::run_worker() }
}
