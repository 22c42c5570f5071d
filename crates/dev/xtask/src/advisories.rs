//! Known vulnerabilities of dependencies: the `RustSec` advisory database as a dated file in
//! `advisories/`, so that the check needs no network, and the command that renews it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    command::{output, root, run},
};

/// The database's repository, and the name that `cargo deny` gives to the folder of its clone.
const SOURCE: &str = "https://github.com/RustSec/advisory-db";
const CLONE_FOLDER: &str = "advisory-db-3157b0e258782691";
/// The parts of the database that are kept.
const KEPT_PATHS: [&str; 4] = ["crates", "rust", "LICENSE.txt", "support.toml"];

/// Unpacks the database as the clone that `cargo deny` expects, and returns the folder.
pub(crate) fn unpacked() -> Result<PathBuf, Failure> {
    let packed = root().join("advisories/rustsec.tar.gz");
    let date = fs::read_to_string(root().join("advisories/DATE"))?;
    let all = root().join("target/tools/advisories");
    let (folder, stamp) = (all.join(CLONE_FOLDER), all.join("DATE"));
    if fs::read_to_string(&stamp).ok().as_ref() == Some(&date) {
        return Ok(all);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let strip = ["--strip-components", "1", "--file"];
    run(Command::new("tar")
        .args(["--extract", "--gzip"])
        .args(strip)
        .arg(packed)
        .arg("--directory")
        .arg(&folder))?;
    let git = |arguments: &[&str]| -> Result<(), Failure> {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=xtask", "-c", "user.email=xtask@localhost"]);
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(name, date.trim());
        }
        output(command.args(arguments).current_dir(&folder)).map(drop)
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--no-gpg-sign", "--message", "Snapshot"])?;
    git(&["remote", "add", "origin", SOURCE])?;
    fs::write(stamp, &date)?;
    Ok(all)
}

/// Replaces the file in `advisories/` by the current content of a clone of the database.
pub(crate) fn renew(clone: Option<&Path>) -> Result<(), Failure> {
    let fetched = root().join("target/tools/advisory-db");
    let clone = if let Some(clone) = clone {
        clone.to_owned()
    } else {
        if fetched.exists() {
            fs::remove_dir_all(&fetched)?;
        }
        run(Command::new("git").args(["clone", "--quiet", "--depth", "1", SOURCE]).arg(&fetched))?;
        fetched
    };
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&clone).args(arguments);
        command
    };
    let date = output(&mut git(&["log", "-1", "--format=%cI"]))?;
    let packed = root().join("advisories/rustsec.tar.gz");
    let archive = ["archive", "--format=tar.gz", "--prefix=db/", "--output"];
    run(git(&archive).arg(&packed).arg("HEAD").args(KEPT_PATHS))?;
    fs::write(root().join("advisories/DATE"), &date)?;
    println!("advisories of {}", date.trim());
    Ok(())
}
