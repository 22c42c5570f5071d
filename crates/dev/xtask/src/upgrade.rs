//! `cargo xtask upgrade-test`: an earlier release and this one side by side on one database.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use postgres_server::{Durability, PostgresServer};

use crate::{
    Failure,
    command::{cargo, free_port, output, root, run},
    packages::{self, BALANCER, BROWSER, POSTGRES, REDIS},
};

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct UpgradeOptions {
    /// A commit or tag of the earlier release, which is built in `target/upgrade`: takes minutes
    #[arg(long)]
    from: Option<String>,
    /// The `avouch` program of the earlier release
    #[arg(long)]
    binary: Option<PathBuf>,
}

pub(crate) fn test(options: &UpgradeOptions) -> Result<(), Failure> {
    packages::ensure(&[BALANCER, BROWSER, POSTGRES, REDIS])?;
    let previous = match options {
        UpgradeOptions { binary: Some(binary), .. } => std::path::absolute(binary)?,
        UpgradeOptions { from: Some(revision), .. } => build(revision)?,
        UpgradeOptions { binary: None, from: None } => return Err("no release is named".into()),
    };
    // The test runs the program of this release that is beside it.
    run(&mut cargo(&["build", "--locked", "--package", "app", "--bins"]))?;
    let server = PostgresServer::start(free_port()?, Durability::Fsync)?;
    let test = ["test", "--locked", "--package", "acceptance", "--test", "resilience", "--"];
    let only = ["--include-ignored", "--exact", "--nocapture", "--test-threads", "1"];
    let names = [
        "upgrade::no_request_fails_while_a_release_replaces_the_one_before",
        "rolling_upgrade::no_request_fails_and_no_applicant_signs_in_again_while_instances_are_replaced",
    ];
    let mut command = cargo(&[&test[..], &only, &names].concat());
    run(command.env("TEST_DATABASE_URL", &server.url).env("AVOUCH_PREVIOUS_BIN", previous))
}

/// Builds the program of a revision, in a work tree and a target folder of its own: in a shared one,
/// the packages of two revisions would be taken for each other.
fn build(revision: &str) -> Result<PathBuf, Failure> {
    let commit = format!("{revision}^{{commit}}");
    let commit = output(git(&root()).args(["rev-parse", "--verify", "--end-of-options", &commit]))?;
    let folder = root().join("target/upgrade");
    let (source, target) = (folder.join("source"), folder.join("target"));
    if source.join(".git").exists() {
        run(git(&source).args(["checkout", "--quiet", "--detach", commit.trim()]))?;
    } else {
        run(git(&root()).args(["worktree", "prune"]))?;
        let add = ["worktree", "add", "--quiet", "--detach"];
        run(git(&root()).args(add).arg(&source).arg(commit.trim()))?;
    }
    let mut command = cargo(&["build", "--locked", "--package", "app", "--bins", "--target-dir"]);
    run(command.arg(&target).current_dir(&source))?;
    Ok(target.join("debug/avouch"))
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder);
    command
}
