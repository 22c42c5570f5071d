//! `cargo xtask`: what people and CI do with this repository, each as one command.

mod advisories;
mod bench;
mod command;
mod packages;
mod passwords;
mod postgres;
mod test;
mod up;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

/// Errors are for people: one line that says what was wrong and what to do.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Tasks of the Avouch repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Installs what is missing, builds, and serves with a demo partner, until Ctrl-C
    Up,
    /// Installs what the tests need, starts throwaway servers, runs every check and every test
    Test(test::Options),
    /// Replaces the known vulnerabilities in `advisories/` by those that are published now
    RenewAdvisories {
        /// A clone of the `RustSec` advisory database; without it one is made
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Replaces the list of frequent passwords in `crates/frequent/data`; needs Python with pip
    RenewPasswords,
    /// Runs the benchmarks and writes target/bench/NAME.json
    Bench {
        /// One benchmark alone
        name: Option<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Up => up::up().await,
        Task::Test(options) => test::test(&options),
        Task::RenewAdvisories { from } => advisories::renew(from.as_deref()),
        Task::RenewPasswords => passwords::renew(),
        Task::Bench { name } => bench::bench(name.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
