//! What the tests of prover and attestor have their work done by.

use std::process::ExitCode;

fn main() -> ExitCode {
    let work = std::env::args().nth(1).unwrap_or_default();
    if work == attestor::EXAMINE { attestor::work() } else { prover::work() }
}
