//! The checks that run no test: formatting, lints, types, licences, advisories and
//! alert rules.

use std::process::Command;

use crate::{
    Failure, advisories,
    command::{cargo, root, run},
    tools::{deny, node_modules, promtool},
};

pub(super) fn formatting() -> Result<(), Failure> {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

pub(super) fn lints() -> Result<(), Failure> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Checks the JavaScript of the embed page and of the studio, which has its types in comments.
pub(super) fn types() -> Result<(), Failure> {
    let folder = root().join("crates/embed");
    node_modules(&folder)?;
    for project in [".", "../adapters/studio"] {
        let check = ["--no-install", "tsc", "--project", project];
        run(Command::new("npx").args(check).current_dir(&folder))?;
    }
    Ok(())
}

/// Checks the alert rules, and tests when they fire.
pub(super) fn alert_rules() -> Result<(), Failure> {
    let folder = root().join("deploy/prometheus");
    run(promtool()?.args(["check", "rules", "alerts.yaml"]).current_dir(&folder))?;
    run(promtool()?.args(["test", "rules", "alerts.test.yaml"]).current_dir(&folder))
}

/// Checks which dependencies are allowed, where they come from, and what is known of their
/// vulnerabilities.
pub(super) fn licences() -> Result<(), Failure> {
    run(&mut deny(&["check", "bans", "licenses", "sources"])?)?;
    // The advisories are in the repository: nothing is fetched.
    advisories::unpacked()?;
    run(&mut deny(&["--offline", "check", "advisories"])?)
}
