//! `avouch`: the service and its commands.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// A request makes and drops dozens of small values: with the system's allocator a poll costs a
// fifth more.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match app::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch: {error}");
            ExitCode::FAILURE
        }
    }
}
