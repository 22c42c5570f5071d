//! `cargo xtask release`: the files of a release. The same commit and the same programs always lead to
//! the same bytes.

mod archive;
mod bill_of_materials;
mod licences;
mod notes;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    command::{cargo, output, root, run},
};

/// The programs of a release, and the folders of their packages.
const PROGRAMS: [(&str, &str); 3] = [
    ("avouch", "crates/app"),
    ("avouch-attestor", "crates/attestation/attestor"),
    ("avouch-verify", "crates/attestation/verify"),
];
/// Files that are packed beside the programs, and their names there.
const FILES: [(&str, &str); 9] = [
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE", "LICENSE"),
    ("NOTICE", "NOTICE"),
    ("deploy/backup", "deploy/backup"),
    ("deploy/compose.yaml", "deploy/compose.yaml"),
    ("deploy/compose/secrets.sh", "deploy/compose/secrets.sh"),
    ("deploy/image", "deploy/image"),
    ("deploy/systemd", "deploy/systemd"),
    ("docs/operators-guide.md", "docs/operators-guide.md"),
];

#[derive(clap::Args)]
pub(crate) struct ReleaseOptions {
    /// The version in Cargo.toml; the commit needs the tag `vVERSION`
    version: String,
    /// A folder with the programs, instead of building them
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Without the tag, with uncommitted changes, and with the notes of what is unreleased
    #[arg(long)]
    trial: bool,
}

/// Writes the files to `target/releases/VERSION`.
pub(crate) fn release(options: &ReleaseOptions) -> Result<(), Failure> {
    let version = &options.version;
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    let section = if options.trial { "Unreleased" } else { version };
    let notes = notes::cut(&changelog, section)?;
    check_version(version)?;
    if !options.trial {
        check_commit(version)?;
    }
    let time = output(&mut git(&["log", "-1", "--format=%ct"]))?.trim().to_owned();
    let host = host()?;
    let programs = match &options.programs {
        Some(folder) => folder.clone(),
        None => build()?,
    };
    let folder = root().join("target/releases").join(version);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("RELEASE-NOTES.md"), notes)?;
    bill_of_materials::write(&folder, version, &time)?;
    let staged = tempfile::tempdir()?;
    let name = format!("avouch-{version}-{host}");
    stage(&staged.path().join(&name), &programs, &host)?;
    archive::pack(staged.path(), &name, &time, &folder.join(format!("{name}.tar.gz")))?;
    let chart = folder.join(format!("avouch-chart-{version}.tgz"));
    archive::pack(&root().join("deploy/helm"), "avouch", &time, &chart)?;
    write_checksums(&folder)?;
    println!("{}", folder.display());
    Ok(())
}

/// Refuses another version than that of the programs.
fn check_version(version: &str) -> Result<(), Failure> {
    let id = output(&mut cargo(&["pkgid", "--package", "app"]))?;
    let found = id.trim().rsplit(['#', '@']).next().unwrap_or_default();
    if found == version { Ok(()) } else { Err(format!("Cargo.toml has version {found}").into()) }
}

/// Refuses a commit without the tag of the version, and changes that are not in it.
fn check_commit(version: &str) -> Result<(), Failure> {
    let tag = format!("v{version}");
    let tags = output(&mut git(&["tag", "--points-at", "HEAD"]))?;
    if !tags.lines().any(|found| found == tag) {
        return Err(format!("the commit has no tag {tag}").into());
    }
    if output(&mut git(&["status", "--porcelain"]))?.is_empty() {
        return Ok(());
    }
    Err("there are changes that are not committed".into())
}

/// Returns the platform that the toolchain builds for.
fn host() -> Result<String, Failure> {
    let version = output(Command::new("rustc").arg("--version").arg("--verbose"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not tell its host")?.to_owned())
}

/// Builds the programs without the names of this machine's folders in them, and returns their folder.
fn build() -> Result<PathBuf, Failure> {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let flags = [
        format!("--remap-path-prefix={}=/avouch", root().display()),
        format!("--remap-path-prefix={home}=/cargo"),
    ];
    let target = root().join("target/release-build");
    let mut build = cargo(&["build", "--release", "--locked"]);
    build.args(["--package", "app", "--package", "attestor", "--package", "avouch-verify"]);
    build.args(["--bins", "--target-dir"]).arg(&target);
    run(build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")))?;
    Ok(target.join("release"))
}

/// Copies what the archive contains into a folder.
fn stage(folder: &Path, programs: &Path, host: &str) -> Result<(), Failure> {
    let copied = |from: &Path, to: &Path| {
        fs::create_dir_all(to.parent().unwrap_or(folder))?;
        run(Command::new("cp").arg("--recursive").arg(from).arg(to))
    };
    for (program, _) in PROGRAMS {
        copied(&programs.join(program), &folder.join("bin").join(program))?;
    }
    for (from, to) in FILES {
        copied(&root().join(from), &folder.join(to))?;
    }
    let packages = PROGRAMS.map(|(_, package)| package);
    fs::write(folder.join("LICENSES-OF-DEPENDENCIES.txt"), licences::collect(&packages, host)?)?;
    Ok(())
}

/// Writes the SHA-256 of all files, as `sha256sum --check` reads them.
fn write_checksums(folder: &Path) -> Result<(), Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name());
    }
    names.sort();
    let sums = output(Command::new("sha256sum").arg("--").args(names).current_dir(folder))?;
    fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(())
}

fn git(arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(root());
    git
}
