//! Runs tests: by nextest with a process for each test, by libtest with one for a whole target, and
//! those in the documentation.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use super::summary::{PhaseOutcome, Timed};
use crate::{
    Failure,
    command::{cargo, root},
    tools,
};

/// Runs tests by nextest, as `.config/nextest.toml` says, with variables of the environment, and counts
/// them by its `JUnit` report.
pub(super) fn nextest(
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<PhaseOutcome, Failure> {
    let reports = root().join("target/nextest");
    for report in junit(&reports) {
        fs::remove_file(report)?;
    }
    let run = ["run", "--no-fail-fast", "--no-tests=pass"];
    let mut command = tools::nextest(&[&run, arguments].concat())?;
    command.envs(variables.iter().copied());
    println!("$ cargo nextest {} {}", run.join(" "), arguments.join(" "));
    let status = command.status()?;
    let mut outcome = PhaseOutcome::default();
    for report in junit(&reports) {
        count(&fs::read_to_string(report)?, &mut outcome);
    }
    if !status.success() && outcome.failed == 0 {
        return Err(format!("`cargo nextest run` failed: {status}").into());
    }
    Ok(outcome)
}

/// The reports in the folders of nextest's profiles.
fn junit(reports: &Path) -> Vec<PathBuf> {
    let profiles = fs::read_dir(reports).into_iter().flatten().flatten();
    let reports = profiles.map(|profile| profile.path().join("junit.xml"));
    reports.filter(|report| report.exists()).collect()
}

/// Reads a report line by line: each element of interest is on a line of its own, and output of tests
/// is not in it.
fn count(report: &str, outcome: &mut PhaseOutcome) {
    for line in report.lines().map(str::trim_start) {
        let attribute = |name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0)
        };
        let number = |name: &str| attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        if line.starts_with("<testsuites ") {
            let failed = number("failures") + number("errors");
            outcome.failed += failed;
            outcome.passed += number("tests").saturating_sub(failed);
        } else if line.starts_with("<failure ") || line.starts_with("<error ") {
            let test = outcome.tests.last().map_or("", |test| &test.name);
            let reason = unescape(attribute("message").unwrap_or_default());
            outcome.failures.push(format!("{test}: {reason}"));
        } else if line.starts_with("<testcase ") {
            let seconds = attribute("time").and_then(|text| text.parse().ok()).unwrap_or(0.0);
            let of = |name: &str| attribute(name).unwrap_or_default();
            let name = format!("{} {}", of("classname"), of("name"));
            let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            outcome.tests.push(Timed { name, took });
        }
    }
}

/// Replaces the entities that attributes are written with (XML 1.0, section 4.6).
fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&apos;", "'").replace("&#10;", " ");
    text.replace("&amp;", "&")
}

/// Runs every test program of some packages with one process for each program.
pub(super) fn in_one_process(packages: &[&str], profile: &[&str]) -> Result<PhaseOutcome, Failure> {
    let mut outcome = PhaseOutcome::default();
    let mut broken = None;
    for program in programs(packages, profile)? {
        println!("$ {}", program.file.display());
        let mut command = Command::new(&program.file);
        command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
        let failed = outcome.failed;
        let success = libtest(&mut command, &mut outcome, |line| println!("{line}"))?;
        if !success && outcome.failed == failed {
            broken = Some(program.file);
        }
    }
    match broken {
        None => Ok(outcome),
        Some(file) => Err(format!("`{}` ended before its tests did", file.display()).into()),
    }
}

/// Runs the tests in the documentation of all crates, which nextest does not run. Prints what they
/// print only where one fails, since most crates have none and print five lines to say so.
pub(super) fn documentation(profile: &[&str]) -> Result<PhaseOutcome, Failure> {
    let arguments = [&["test", "--workspace", "--doc", "--no-fail-fast"], profile].concat();
    println!("$ cargo {}", arguments.join(" "));
    let mut outcome = PhaseOutcome::default();
    let mut output = Vec::new();
    let success =
        libtest(&mut cargo(&arguments), &mut outcome, |line| output.push(line.to_owned()))?;
    if !success {
        println!("{}", output.join("\n"));
    }
    if !success && outcome.failed == 0 {
        return Err("`cargo test --doc` failed".into());
    }
    Ok(outcome)
}

/// Runs a command that prints results as libtest does, and counts them; whether it succeeded.
fn libtest(
    command: &mut Command,
    outcome: &mut PhaseOutcome,
    mut print: impl FnMut(&str),
) -> Result<bool, Failure> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line?;
        print(&line);
        if let Some(test) =
            line.strip_prefix("test ").and_then(|test| test.strip_suffix(" ... FAILED"))
        {
            outcome.failures.push(test.to_owned());
        }
        if line.starts_with("test result:") {
            outcome.passed += before(&line, " passed");
            outcome.failed += before(&line, " failed");
        }
    }
    Ok(child.wait()?.success())
}

/// The number before a word.
fn before(line: &str, word: &str) -> u32 {
    let before = line.split(word).next().unwrap_or_default();
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A program of tests, and the folder of its package.
struct Program {
    file: PathBuf,
    package: PathBuf,
}

/// The test programs of some packages, built with the whole workspace, so that no dependency is built
/// twice with other features.
fn programs(packages: &[&str], profile: &[&str]) -> Result<Vec<Program>, Failure> {
    let format = "--message-format=json-render-diagnostics";
    let build = [&["test", "--workspace", "--no-run", format], profile].concat();
    let output = cargo(&build).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("`cargo {}` failed: {}", build.join(" "), output.status).into());
    }
    let mut programs = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(artifact) = serde_json::from_slice::<Value>(line) else { continue };
        let is_test = artifact.pointer("/profile/test").and_then(Value::as_bool) == Some(true);
        let text = |pointer: &str| artifact.pointer(pointer).and_then(Value::as_str);
        let (Some(file), Some(manifest)) = (text("/executable"), text("/manifest_path")) else {
            continue;
        };
        let package = Path::new(manifest).parent().unwrap_or(Path::new("."));
        let name = text("/package_id").and_then(name_of);
        if is_test && name.is_some_and(|name| packages.contains(&name)) {
            programs.push(Program { file: file.into(), package: package.to_owned() });
        }
    }
    programs.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(programs)
}

/// The name in a package's identifier: `path+file:///…/crates/attestation/verify#avouch-verify@0.1.0`, where it
/// differs from the folder's, or `path+file:///…/crates/attestation/prover#0.1.0`.
fn name_of(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    version.split_once('@').map(|(name, _)| name).or_else(|| path.rsplit('/').next())
}
