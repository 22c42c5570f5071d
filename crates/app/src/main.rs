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
    if arguments.next_if(|first| first == app::JAIL).is_some() {
        return cdp::enter_sandbox(arguments);
    }
    match arguments.next_if(|first| first == app::PROVE || first == app::EXAMINE) {
        Some(work) if work == app::PROVE => return prover::work(),
        Some(_) => return attestor::work(),
        None => (),
    }
    match app::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch: {error}");
            ExitCode::FAILURE
        }
    }
}
