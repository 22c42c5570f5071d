//! The jail's helper alone, for this crate's own tests: `avouch` is its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    cdp::enter_jail(std::env::args_os().skip(1))
}
