//! `avouch`: the service and its commands.

use std::process::ExitCode;

use mimalloc::MiMalloc;

// A request makes and drops dozens of small values: with the system's allocator a poll costs a
// fifth more.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Before there is a second thread: what is to become a browser is not the service any more.
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next_if(|first| first == app::SANDBOX_ARGUMENT).is_some() {
        return chromium::enter_sandbox(arguments);
    }
    match arguments
        .next_if(|first| first == app::PROVER_ARGUMENT || first == app::EXAMINER_ARGUMENT)
    {
        Some(work) if work == app::PROVER_ARGUMENT => return prover::run_worker(),
        Some(_) => return attestor::run_worker(),
        None => (),
    }
    match app::cli::run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("avouch: {error}");
            ExitCode::FAILURE
        }
    }
}
