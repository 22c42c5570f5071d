//! Bills of materials of the programs, in the form of `CycloneDX`.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{PROGRAMS, git};
use crate::{
    Failure,
    command::{output, run},
    tools,
};

/// Writes `PROGRAM-VERSION.cdx.json` for each program. `time` is the time that the bills state.
pub(super) fn write(folder: &Path, version: &str, time: &str) -> Result<(), Failure> {
    // In a copy: the tool writes beside each Cargo.toml.
    let copy = tempfile::tempdir()?;
    let archive = copy.path().join("source.tar");
    run(git(&["archive", "--format=tar", "--output"]).arg(&archive).arg("HEAD"))?;
    let source = copy.path().join("source");
    fs::create_dir(&source)?;
    run(Command::new("tar").arg("--extract").arg("--file").arg(archive).arg("-C").arg(&source))?;
    let form = ["--format", "json", "--spec-version", "1.5", "--override-filename", "bill"];
    let mut tool = tools::bill_of_materials(&[&form[..], &["--quiet", "--quiet"]].concat())?;
    tool.arg("--manifest-path").arg(source.join("Cargo.toml"));
    // With this variable the tool writes neither a random number nor the current time.
    output(tool.env("SOURCE_DATE_EPOCH", time))?;
    for (program, package) in PROGRAMS {
        let bill = fs::read_to_string(source.join(package).join("bill.json"))?;
        // The identifiers of our own packages have the folder in them.
        let bill = bill.replace(&*source.to_string_lossy(), "/avouch");
        check(program, version, &bill)?;
        fs::write(folder.join(format!("{program}-{version}.cdx.json")), bill)?;
    }
    Ok(())
}

/// Refuses a bill that is for another version, or that lists no dependency.
fn check(program: &str, version: &str, bill: &str) -> Result<(), Failure> {
    let bill: Value = serde_json::from_str(bill)?;
    let found = bill.pointer("/metadata/component/version").and_then(Value::as_str);
    let components = bill.get("components").and_then(Value::as_array).map_or(0, Vec::len);
    if found == Some(version) && components > 0 {
        return Ok(());
    }
    let found = found.unwrap_or("no version");
    Err(format!("the bill of {program} has {found} and {components} components").into())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_bill_of_another_version_or_without_components_is_refused() {
        let bill = |version: &str, components: &str| {
            format!(
                r#"{{"metadata":{{"component":{{"version":"{version}"}}}},"components":[{components}]}}"#
            )
        };
        assert!(check("avouch", "1.0.0", &bill("1.0.0", "{}")).is_ok());
        for wrong in [bill("1.0.1", "{}"), bill("1.0.0", ""), "{}".to_owned()] {
            assert!(check("avouch", "1.0.0", &wrong).is_err(), "{wrong}");
        }
    }
}
