//! `cargo xtask test`: every check and every test, with the servers they need.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Failure, advisories,
    command::{cargo, found, root, run},
    packages::{self, BROWSER, FFMPEG, NETWORKS, NODE, OCR, POSTGRES, PROXIES, PYTHON, REDIS},
    postgres::{Durability, Postgres},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leaves out formatting, lints, types and licences
    #[arg(long)]
    tests_only: bool,
    /// Tests the release build
    #[arg(long)]
    release: bool,
    /// Passed on to `cargo test`
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn test(options: &Options) -> Result<(), Failure> {
    packages::ensure(&[BROWSER, FFMPEG, OCR, POSTGRES, REDIS, PROXIES, NETWORKS, NODE, PYTHON])?;
    if !options.tests_only {
        run(&mut cargo(&["fmt", "--all", "--check"]))?;
        run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
        types()?;
        licences()?;
    }
    clients()?;
    receivers()?;
    bucket_server()?;
    let server = Postgres::start(Durability::GivenUp)?;
    let profile: &[&str] = if options.release { &["--release"] } else { &[] };
    // The acceptance tests run the service as outsiders do: as a program. Built together with the
    // tests, so that no dependency is built twice for features that only a test asks for.
    let everything = ["build", "--workspace", "--lib", "--bins", "--examples", "--tests"];
    run(&mut cargo(&[&everything, profile].concat()))?;
    let counted = tests(options, profile, &server.url);
    drop(server);
    let (passed, failed) = counted?;
    println!("{passed} passed, {failed} failed");
    if failed == 0 { Ok(()) } else { Err("some tests failed".into()) }
}

/// Runs all tests, shows what they print, and counts them.
fn tests(options: &Options, profile: &[&str], database: &str) -> Result<(u32, u32), Failure> {
    let mut command = cargo(&[&["test", "--workspace", "--no-fail-fast"], profile].concat());
    command.args(&options.rest).env("TEST_DATABASE_URL", database);
    println!("$ cargo test --workspace --no-fail-fast");
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        println!("{line}");
        if line.starts_with("test result:") {
            passed += count(&line, " passed");
            failed += count(&line, " failed");
        }
    }
    let status = child.wait()?;
    if !status.success() && failed == 0 {
        return Err(format!("`cargo test` failed: {status}").into());
    }
    Ok((passed, failed))
}

fn count(line: &str, what: &str) -> u32 {
    let before = line.split(what).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The embed page is JavaScript with types in its comments.
fn types() -> Result<(), Failure> {
    let folder = root().join("crates/embed");
    node_modules(&folder)?;
    run(Command::new("npx").args(["--no-install", "tsc"]).current_dir(&folder))
}

/// What tries the interface description out: generators of clients and of requests.
fn clients() -> Result<(), Failure> {
    node_modules(&root().join("tests/openapi/typescript"))?;
    node_modules(&root().join("crates/embed"))?;
    node_modules(&root().join("tests/oidc"))?;
    python_packages("tests/openapi/requirements.txt", "python")
}

/// What the receivers of webhooks in the documentation are made with.
fn receivers() -> Result<(), Failure> {
    node_modules(&root().join("docs/receivers/node"))?;
    python_packages("docs/auditor/requirements.txt", "auditor-python")?;
    python_packages("tests/mail/requirements.txt", "mail-python")?;
    python_packages("tests/messages/requirements.txt", "messages-python")?;
    python_packages("docs/receivers/python/requirements.txt", "receiver-python")
}

/// A Python of its own among the tools, with the packages of a file.
fn python_packages(wanted: &str, name: &str) -> Result<(), Failure> {
    let wanted = root().join(wanted);
    let python = root().join("target/tools").join(name);
    let stamp = python.join("requirements.txt");
    if fs::read(&stamp).ok() == Some(fs::read(&wanted)?) {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&python))?;
    run(Command::new(python.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(&wanted))?;
    fs::copy(wanted, stamp)?;
    Ok(())
}

/// A server of S3's protocol that checks signatures; of the newest version that this toolchain
/// builds.
fn bucket_server() -> Result<(), Failure> {
    let tools = root().join("target/tools");
    if found("s3s-fs") || tools.join("bin/s3s-fs").exists() {
        return Ok(());
    }
    let version = ["install", "s3s-fs", "--version", "0.13.0-alpha.3", "--features", "binary"];
    // Unoptimised: it has little to do and is built in half the time.
    run(cargo(&version).args(["--debug", "--locked", "--quiet", "--root"]).arg(&tools))
}

pub(crate) fn node_modules(folder: &Path) -> Result<(), Failure> {
    let changed =
        |path: &str| fs::metadata(folder.join(path)).and_then(|file| file.modified()).ok();
    if changed("node_modules/.package-lock.json") < changed("package-lock.json") {
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))?;
    }
    Ok(())
}

/// What dependencies are allowed, and where they come from.
fn licences() -> Result<(), Failure> {
    let tools = root().join("target/tools");
    let deny = tools.join("bin/cargo-deny");
    if !found("cargo-deny") && !deny.exists() {
        run(cargo(&["install", "cargo-deny", "--locked", "--quiet", "--root"]).arg(&tools))?;
    }
    let deny = if found("cargo-deny") { PathBuf::from("cargo-deny") } else { deny };
    let check = |arguments: &[&str]| run(Command::new(&deny).args(arguments).current_dir(root()));
    check(&["check", "bans", "licenses", "sources"])?;
    // What is known of vulnerabilities is in the repository: nothing is fetched.
    advisories::unpacked()?;
    check(&["--offline", "check", "advisories"])
}
