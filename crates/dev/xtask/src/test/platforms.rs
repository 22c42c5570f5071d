//! `cargo xtask test-platforms`: every definition of `platforms/` with the application that it is for.

use std::fs;

use clap::Args;

use super::{run, summary::Summary};
use crate::{
    Failure, command,
    packages::{self, BROWSER, NODE, PYTHON},
};

#[derive(Args)]
pub(crate) struct PlatformOptions {
    /// One platform alone
    name: Option<String>,
    /// Tests the release build
    #[arg(long)]
    release: bool,
    /// Replaces the fixtures in `platforms/` by those of these runs
    #[arg(long)]
    record: bool,
}

/// Runs the tests of all platforms, or of one, also those that take minutes to install.
pub(crate) fn test_platforms(options: &PlatformOptions) -> Result<(), Failure> {
    let tests = filter(options.name.as_deref())?;
    packages::ensure(&[BROWSER, NODE, PYTHON])?;
    let profile: &[&str] = if options.release { &["--release"] } else { &[] };
    let mut summary = Summary::default();
    summary.time("build", || {
        // As in `cargo xtask test`: what is built for one is built for the other.
        let all = ["build", "--workspace", "--lib", "--bins", "--examples", "--tests"];
        command::run(&mut command::cargo(&[&all, profile].concat()))
    })?;
    // One after another, so that the times can be compared.
    let arguments = ["--workspace", "--run-ignored", "all", "--test-threads", "1", "-E", &tests];
    let arguments = [profile, &arguments].concat();
    let record: &[_] = if options.record { &[("AVOUCH_TEST_RECORD", "1")] } else { &[] };
    let done = summary.tests("platforms", || run::nextest(&arguments, record));
    summary.print();
    done?;
    summary.end()
}

/// The tests of a platform, in nextest's language: their names begin with that of its folder.
fn filter(name: Option<&str>) -> Result<String, Failure> {
    let all = "package(=acceptance) & binary(=platforms)";
    let Some(name) = name else { return Ok(all.to_owned()) };
    let entries = fs::read_dir(command::root().join("platforms"))?.flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut known: Vec<_> =
        folders.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    known.sort();
    if known.iter().any(|folder| folder == name) {
        return Ok(format!("{all} & test(/^{}_/)", name.replace('-', "_")));
    }
    Err(format!("there is no platform `{name}`; there are: {}", known.join(", ")).into())
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_platform_is_chosen_by_the_name_of_its_folder() {
        let one = filter(Some("ihatemoney")).unwrap();
        assert_eq!(one, "package(=acceptance) & binary(=platforms) & test(/^ihatemoney_/)");
        let unknown = filter(Some("shop")).unwrap_err().to_string();
        assert!(unknown.starts_with("there is no platform `shop`; there are: "), "{unknown}");
        assert!(unknown.contains("canaille"), "{unknown}");
    }
}
