//! `cargo xtask test` and `cargo xtask check`: checks and tests in phases, with the servers that they
//! need.

mod checks;
mod platforms;
mod run;
mod summary;

use postgres_server::{Durability, PostgresServer};

pub(crate) use self::platforms::{PlatformOptions, test_platforms};
use self::summary::Summary;
use crate::{
    Failure, command,
    packages::{
        self, BALANCER, BROWSER, FAKETIME, FFMPEG, NETWORKS, NODE, OCR, POSTGRES, PROXIES, PYTHON,
        REDIS, SELENIUM, SYSTEMD,
    },
    tools,
};

/// Packages whose tests share keys and proofs in statics of the test program, which take seconds to
/// minutes to make: with a process for each test, each would make them again.
const PROOFS: [&str; 3] = ["attestation", "avouch-verify", "prover"];
/// Packages that are no part of the unit tests, since their tests need servers or browsers, or take
/// most of a minute.
const APART: [&str; 3] = ["acceptance", "attestor", "chromium"];
/// Adapters whose tests in `tests/` need servers; those in `src/` are unit tests.
const ADAPTERS: [&str; 4] = ["limits", "objects", "store", "webhooks"];

/// A phase that nextest runs: its name, which is also that of a target of the acceptance package
/// where it is one alone, and the tests that it selects.
type Phase = (&'static str, Selection);

enum Selection {
    /// All that no other phase runs.
    Unit,
    Filter(&'static str),
    /// The tests of adapters that need servers.
    Db,
    /// A target of the acceptance package.
    Target,
}

const PHASES: [Phase; 6] = [
    ("unit", Selection::Unit),
    ("attestor", Selection::Filter("package(=attestor)")),
    ("repository", Selection::Target),
    ("packaging", Selection::Target),
    ("db", Selection::Db),
    END_TO_END,
];
/// All tests with the service or a browser. They are one phase, so that no core is idle while the last
/// tests of one target end.
const END_TO_END: Phase = (
    "end to end",
    Selection::Filter(
        "package(=chromium) + (package(=acceptance) - binary(=repository) - binary(=packaging))",
    ),
);
/// The phase of `--browser`.
const WITH_BROWSERS: Phase = (
    "browser",
    Selection::Filter(
        "package(=chromium) \
         + (package(=acceptance) & (binary(=browser) + binary(=sessions) + binary(=platforms)))",
    ),
);
/// Tests at once beyond the number of cores, in phases whose tests wait for servers, pages and time limits
/// for a third of their time or more.
const MORE_THREADS: [(&str, usize); 3] = [("db", 1), (END_TO_END.0, 2), (WITH_BROWSERS.0, 2)];

#[derive(clap::Args)]
pub(crate) struct TestOptions {
    /// Leaves out formatting, lints, types, licences and alert rules
    #[arg(long)]
    tests_only: bool,
    /// Tests the release build
    #[arg(long)]
    release: bool,
    #[command(flatten)]
    only: Only,
    /// Passed on to `cargo nextest run`, which then runs these tests alone
    #[arg(last = true)]
    rest: Vec<String>,
}

/// The parts of the tests that can be selected, of which at most one is.
#[derive(clap::Args)]
struct Only {
    /// Only the tests that need neither a server nor a browser and take seconds
    #[arg(long, conflicts_with_all = ["db", "browser", "rest"])]
    unit: bool,
    /// Only the tests of stores and other adapters, with throwaway servers
    #[arg(long, conflicts_with_all = ["browser", "rest"])]
    db: bool,
    /// Only the tests of the remote browser and of sessions in it
    #[arg(long, conflicts_with = "rest")]
    browser: bool,
}

/// Runs what the options select, and prints a summary also where a phase breaks off.
pub(crate) fn test(options: &TestOptions) -> Result<(), Failure> {
    let mut summary = Summary::default();
    let done = match options {
        TestOptions { only: Only { unit: true, .. }, .. } => unit(options.profile(), &mut summary),
        TestOptions { only: Only { db: true, .. }, .. } => db(options.profile(), &mut summary),
        _ => with_everything(options, &mut summary),
    };
    summary.print();
    done?;
    summary.end()
}

/// `cargo xtask check`: what must hold before a commit and needs no server.
pub(crate) fn check() -> Result<(), Failure> {
    let mut summary = Summary::default();
    let mut phases = || {
        summary.time("fmt", checks::formatting)?;
        summary.time("clippy", checks::lints)?;
        unit(&[], &mut summary)?;
        let repository = ["--package", "acceptance", "--test", "repository"];
        summary.tests("repository", || run::nextest(&repository, &[]))
    };
    let done = phases();
    summary.print();
    done?;
    summary.end()
}

/// Builds and runs the unit tests alone. The packages left out are not built either.
fn unit(profile: &[&str], summary: &mut Summary) -> Result<(), Failure> {
    let filter = not(&adapters());
    // Most of their time is the start of a process, and some wait.
    let threads = cores().saturating_mul(2).to_string();
    let mut arguments = vec!["--workspace", "-E", &filter, "--test-threads", &threads];
    arguments.extend(APART.iter().chain(&PROOFS).flat_map(|name| ["--exclude", name]));
    arguments.extend(profile);
    summary.tests("unit", || run::nextest(&arguments, &[]))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Builds and runs the tests of adapters alone, with a PostgreSQL server; the tests start Redis and the
/// S3 server themselves.
fn db(profile: &[&str], summary: &mut Summary) -> Result<(), Failure> {
    packages::ensure(&[POSTGRES, REDIS])?;
    summary.time("tools", tools::bucket_server)?;
    let server = PostgresServer::start(command::free_port()?, Durability::NoFsync)?;
    let filter = adapters();
    let mut arguments = vec!["-E", &filter];
    arguments.extend(ADAPTERS.iter().flat_map(|name| ["--package", name]));
    arguments.extend(profile);
    summary.tests("db", || run::nextest(&arguments, &[("TEST_DATABASE_URL", &server.url)]))
}

fn with_everything(options: &TestOptions, summary: &mut Summary) -> Result<(), Failure> {
    packages::ensure(&[
        BALANCER, BROWSER, FAKETIME, FFMPEG, OCR, POSTGRES, REDIS, PROXIES, NETWORKS, NODE, PYTHON,
        SELENIUM, SYSTEMD,
    ])?;
    if !options.tests_only && !options.only.browser {
        summary.time("fmt", checks::formatting)?;
        summary.time("clippy", checks::lints)?;
        summary.time("types", checks::types)?;
        summary.time("licences", checks::licences)?;
        summary.time("alert rules", checks::alert_rules)?;
    }
    summary.time("tools", || {
        tools::clients()?;
        tools::documented_programs()?;
        tools::manifests()?;
        tools::selenium_server()?;
        tools::bucket_server()
    })?;
    let server = PostgresServer::start(command::free_port()?, Durability::NoFsync)?;
    let profile = options.profile();
    summary.time("build", || {
        // The acceptance tests run the service as a program. Built together with the tests, so that no
        // dependency is built twice for features that only a test enables.
        let all = ["build", "--workspace", "--lib", "--bins", "--examples", "--tests"];
        command::run(&mut command::cargo(&[&all, profile].concat()))
    })?;
    let nextest = |arguments: &[&str]| {
        let database = [("TEST_DATABASE_URL", server.url.as_str())];
        run::nextest(&[&["--workspace"], profile, arguments].concat(), &database)
    };
    if !options.rest.is_empty() {
        let rest: Vec<_> = options.rest.iter().map(String::as_str).collect();
        return summary.tests("selected", || nextest(&rest));
    }
    let phases = if options.only.browser { &[WITH_BROWSERS][..] } else { &PHASES };
    for (name, selection) in phases {
        let filter = selection.filter(name);
        let more =
            MORE_THREADS.iter().find(|(phase, _)| phase == name).map_or(0, |(_, more)| *more);
        let threads = cores().saturating_add(more).min(cores().saturating_mul(2)).to_string();
        summary.tests(name, || nextest(&["-E", &filter, "--test-threads", &threads]))?;
    }
    if options.only.browser {
        return Ok(());
    }
    summary.tests("proofs", || run::in_one_process(&PROOFS, profile))?;
    summary.tests("doc", || run::documentation(profile))
}

impl TestOptions {
    fn profile(&self) -> &'static [&'static str] {
        if self.release { &["--release"] } else { &[] }
    }
}

impl Selection {
    /// The filter in nextest's language.
    fn filter(&self, name: &str) -> String {
        match self {
            Self::Filter(filter) => (*filter).to_owned(),
            Self::Target => format!("package(=acceptance) & binary(={name})"),
            Self::Db => adapters(),
            Self::Unit => {
                let others = any(APART.iter().chain(&PROOFS));
                not(&format!("{others} + {}", adapters()))
            }
        }
    }
}

/// The tests of adapters that need servers, in nextest's language.
fn adapters() -> String {
    format!("({} & kind(test))", any(&ADAPTERS))
}

fn any<'a>(packages: impl IntoIterator<Item = &'a &'a str>) -> String {
    let packages = packages.into_iter().map(|name| format!("package(={name})"));
    format!("({})", packages.collect::<Vec<_>>().join(" + "))
}

fn not(filter: &str) -> String {
    format!("not ({filter})")
}
