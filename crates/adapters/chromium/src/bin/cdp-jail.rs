//! The sandbox's helper alone, for this crate's tests; `avouch` contains the helper itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    chromium::enter_sandbox(std::env::args_os().skip(1))
}
