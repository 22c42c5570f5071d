//! Programs and packages that checks and tests need beyond the system's: Node.js and Python packages,
//! `cargo-nextest`, `cargo-deny` and an S3 server, installed into `target/tools` where they are
//! missing.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    command::{cargo, found, root, run},
};

fn tools() -> PathBuf {
    root().join("target/tools")
}

/// Installs a program with `cargo install` unless it is on `PATH` or was installed before.
fn installed(program: &str, arguments: &[&str]) -> Result<(), Failure> {
    if found(program) || tools().join("bin").join(program).exists() {
        return Ok(());
    }
    run(cargo(&["install", "--locked", "--quiet"]).args(arguments).arg("--root").arg(tools()))
}

/// `PATH` with the installed programs at its end.
fn path() -> Result<OsString, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([tools().join("bin")]);
    Ok(std::env::join_paths(folders)?)
}

/// `cargo nextest`, installed where it is missing.
pub(crate) fn nextest(arguments: &[&str]) -> Result<Command, Failure> {
    installed("cargo-nextest", &["cargo-nextest"])?;
    let mut command = cargo(&[&["nextest"], arguments].concat());
    command.env("PATH", path()?);
    Ok(command)
}

/// `cargo-deny`, installed where it is missing.
pub(crate) fn deny(arguments: &[&str]) -> Result<Command, Failure> {
    // Unoptimised: it takes seconds, and is built in half the time.
    installed("cargo-deny", &["cargo-deny", "--debug"])?;
    let mut command = cargo(&[&["deny"], arguments].concat());
    command.env("PATH", path()?);
    Ok(command)
}

/// An S3 server that checks signatures, in the newest version that this toolchain builds.
pub(crate) fn bucket_server() -> Result<(), Failure> {
    let version = ["s3s-fs", "--version", "0.13.0-alpha.3", "--features", "binary"];
    // Unoptimised: it has little to do and is built in half the time.
    installed("s3s-fs", &[&version[..], &["--debug"]].concat())
}

/// `promtool`, which checks and tests alert rules: the program of Debian's package, unpacked where it is
/// missing, since installing the package would start a server.
pub(crate) fn promtool() -> Result<Command, Failure> {
    if found("promtool") {
        return Ok(Command::new("promtool"));
    }
    let folder = tools().join("prometheus");
    let program = folder.join("usr/bin/promtool");
    if !program.exists() {
        if !found("apt-get") {
            return Err(
                "missing here: promtool (on Debian: sudo apt-get install prometheus)".into()
            );
        }
        fs::create_dir_all(&folder)?;
        let download = || {
            run(Command::new("apt-get").args(["download", "-q", "prometheus"]).current_dir(&folder))
        };
        if download().is_err() {
            // The lists of packages may be missing, or older than the archive.
            run(Command::new("apt-get").args(["update", "-q"]))?;
            download()?;
        }
        let files = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
        let package = files.filter(|path| path.extension().is_some_and(|end| end == "deb")).last();
        let package = package.ok_or("apt-get downloaded no package")?;
        run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&folder))?;
        fs::remove_file(package)?;
    }
    Ok(Command::new(program))
}

/// The generators of clients and requests that try the interface description out, and the providers
/// that tests start.
pub(crate) fn clients() -> Result<(), Failure> {
    node_modules(&root().join("tests/openapi/typescript"))?;
    node_modules(&root().join("crates/embed"))?;
    node_modules(&root().join("tests/oidc"))?;
    python_packages("tests/openapi/requirements.txt", "python")?;
    python_packages("tests/mail/requirements.txt", "mail-python")?;
    python_packages("tests/messages/requirements.txt", "messages-python")
}

/// The packages of the documentation's webhook endpoints and of its auditor.
pub(crate) fn documented_programs() -> Result<(), Failure> {
    node_modules(&root().join("docs/receivers/node"))?;
    python_packages("docs/auditor/requirements.txt", "auditor-python")?;
    python_packages("docs/receivers/python/requirements.txt", "receiver-python")
}

/// The server of Selenium Grid, which the tests of fleets start: the file of an npm package, without what
/// the package depends on.
pub(crate) fn selenium_server() -> Result<(), Failure> {
    const PACKAGE: &str = "@nightwatch/selenium-server@4.20.0";
    const INTEGRITY: &str = "sha512-QCztEGeC2sd1g3KU7guLW2a1Z4wC1BlCJl9P9Av3QtfzI4+EA7LKhDFha+CRxswmHHW0QQtYI9z0EZ8YSDNMZA==";
    let folder = tools().join("selenium");
    let server = folder.join("package/lib/selenium-server-4.20.0.jar");
    if server.exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder)?;
    let packed = Command::new("npm")
        .args(["pack", "--json", "--loglevel", "error", PACKAGE])
        .current_dir(&folder)
        .output()?;
    if !packed.status.success() {
        let error = String::from_utf8_lossy(&packed.stderr).into_owned();
        return Err(format!("`npm pack {PACKAGE}` failed: {error}").into());
    }
    let packed: serde_json::Value = serde_json::from_slice(&packed.stdout)?;
    let of = |name: &str| packed.pointer(&format!("/0/{name}")).and_then(|text| text.as_str());
    if of("integrity") != Some(INTEGRITY) {
        return Err(format!("{PACKAGE} is not the file that it was: {:?}", of("integrity")).into());
    }
    let archive = folder.join(of("filename").ok_or("`npm pack` named no file")?);
    run(Command::new("tar").arg("--extract").arg("--file").arg(&archive).current_dir(&folder))?;
    fs::remove_file(archive)?;
    Ok(())
}

/// The engine of Helm, and the schemas of Kubernetes and Compose.
pub(crate) fn manifests() -> Result<(), Failure> {
    python_packages("tests/packaging/requirements.txt", "packaging-python")
}

/// `cargo-cyclonedx`, which writes bills of materials, installed where it is missing.
pub(crate) fn bill_of_materials(arguments: &[&str]) -> Result<Command, Failure> {
    installed("cargo-cyclonedx", &["cargo-cyclonedx", "--version", "0.5.9"])?;
    let mut command = cargo(&[&["cyclonedx"], arguments].concat());
    command.env("PATH", path()?);
    Ok(command)
}

/// Creates a Python environment in `target/tools` with the packages of a requirements file.
fn python_packages(wanted: &str, name: &str) -> Result<(), Failure> {
    let wanted = root().join(wanted);
    let python = tools().join(name);
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

/// Installs the packages of a `package-lock.json` that is newer than its `node_modules`.
pub(crate) fn node_modules(folder: &Path) -> Result<(), Failure> {
    let changed =
        |path: &str| fs::metadata(folder.join(path)).and_then(|file| file.modified()).ok();
    if changed("node_modules/.package-lock.json") < changed("package-lock.json") {
        run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder))?;
    }
    Ok(())
}
