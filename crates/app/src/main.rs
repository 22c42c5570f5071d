//! `avouch`: the service and its commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    match app::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("avouch: {error}");
            ExitCode::FAILURE
        }
    }
}
