//! `cargo xtask`: the tasks of developers and CI, each as one command.

mod advisories;
mod bench;
mod command;
mod docs;
mod image;
mod packages;
mod passwords;
mod release;
mod simulate;
mod soak;
mod statements;
mod test;
mod tools;
mod up;
mod upgrade;
mod vocabulary;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

/// An error is printed as one line that says what was wrong and what to do.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Tasks of the Avouch repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Installs what is missing, builds, and serves with a demo partner, until Ctrl-C
    Up,
    /// Installs what the tests need, starts throwaway servers, runs every check and every test
    Test(test::TestOptions),
    /// Verifies accounts of the real applications in `platforms/`, which it installs
    TestPlatforms(test::PlatformOptions),
    /// Runs the checks and tests that need no server: formatting, lints, unit tests, repository tests
    Check,
    /// Writes the documentation site to target/docs
    Docs,
    /// Writes the files of a release to target/releases: archive, chart, bills of materials, checksums, notes
    Release(release::ReleaseOptions),
    /// Runs the service in a container as docs/operators-guide.md describes it, with runc; needs root
    TryImage {
        /// The program `avouch`, which the root file system has to be able to run
        program: PathBuf,
    },
    /// Replaces the known vulnerabilities in `advisories/` by those that are published now
    RenewAdvisories {
        /// A clone of the `RustSec` advisory database; without it one is made
        #[arg(long)]
        from: Option<PathBuf>,
    },
    /// Replaces the list of frequent passwords in `crates/breached-passwords/data`; needs Python with pip
    RenewPasswords,
    /// Writes down the SQL statements of a release that is made, against which later migrations are tested
    RecordRelease {
        /// The name of the release, as in the changelog
        name: String,
    },
    /// Replaces the processes of an earlier release by those of this one under load, with the migration
    /// in between: no request may fail, and no applicant has to sign in again
    UpgradeTest(upgrade::UpgradeOptions),
    /// Kills processes of a deployment of five instances for an hour while applicants sign in, and reports;
    /// nothing may be stuck, lost or left
    Soak(soak::SoakOptions),
    /// Counts type names that stand for several types, and words that the glossary does not use
    Vocabulary(vocabulary::VocabularyOptions),
    /// Simulates a day of sessions on virtual time; `cargo xtask simulate --help` lists the options
    #[command(disable_help_flag = true)]
    Simulate {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
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
        Task::TestPlatforms(options) => test::test_platforms(&options),
        Task::Check => test::check(),
        Task::Docs => docs::docs(),
        Task::Release(options) => release::release(&options),
        Task::TryImage { program } => image::try_image(&program),
        Task::RenewAdvisories { from } => advisories::renew(from.as_deref()),
        Task::RenewPasswords => passwords::renew(),
        Task::RecordRelease { name } => statements::record(&name).await,
        Task::UpgradeTest(options) => upgrade::test(&options),
        Task::Soak(options) => soak::soak(&options),
        Task::Vocabulary(options) => vocabulary::vocabulary(&options),
        Task::Simulate { options } => simulate::simulate(&options),
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
