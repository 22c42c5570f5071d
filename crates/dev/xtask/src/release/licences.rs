//! The licences of all packages that are linked into the programs, as their packages contain them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{
    Failure,
    command::{cargo, output},
};

/// The beginnings of the names of files with licences, in upper case.
const NAMES: [&str; 5] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE"];

/// Returns a list of the packages, and each text once with the packages that have it. `folders` are
/// those of the programs' own packages, and `host` is the platform.
pub(super) fn collect(folders: &[&str], host: &str) -> Result<String, Failure> {
    let options = ["metadata", "--format-version=1", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&output(&mut cargo(&options))?)?;
    let linked = linked(&metadata, folders);
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in array(&metadata, "packages") {
        let is_foreign = package.get("source").is_some_and(Value::is_string);
        if !is_foreign || !linked.contains(text(package, "id")) {
            continue;
        }
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        writeln!(list, "{name}: {}", text(package, "license"))?;
        let folder = Path::new(text(package, "manifest_path")).parent().unwrap_or(Path::new("/"));
        for text in licences_in(folder)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = format!("The programs contain these packages:\n\n{list}");
    for (text, packages) in texts {
        let line = "-".repeat(80);
        write!(all, "\n{line}\n{}\n\n{}\n", packages.join(", "), text.trim())?;
    }
    Ok(all)
}

/// Returns the identifiers of the packages that are linked into those in `folders`. Dependencies of
/// build scripts and tests are not.
fn linked<'a>(metadata: &'a Value, folders: &[&str]) -> BTreeSet<&'a str> {
    let manifests: Vec<_> = folders.iter().map(|folder| format!("{folder}/Cargo.toml")).collect();
    let is_ours = |package: &&Value| {
        let path = text(package, "manifest_path");
        manifests.iter().any(|manifest| path.ends_with(manifest))
    };
    let packages = array(metadata, "packages").iter().filter(is_ours);
    let mut waiting: Vec<_> = packages.map(|package| text(package, "id")).collect();
    let resolved = metadata.get("resolve").unwrap_or(&Value::Null);
    let nodes: BTreeMap<_, _> =
        array(resolved, "nodes").iter().map(|node| (text(node, "id"), node)).collect();
    let is_normal = |kind: &Value| kind.get("kind").is_none_or(Value::is_null);
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).map(|node| array(node, "deps")).unwrap_or_default();
        let linked = dependencies
            .iter()
            .filter(|dependency| array(dependency, "dep_kinds").iter().any(is_normal));
        waiting.extend(linked.map(|dependency| text(dependency, "pkg")));
    }
    seen
}

/// Returns the texts of a package's files with licences, ordered by the files' names.
fn licences_in(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        texts.push(String::from_utf8_lossy(&fs::read(file)?).replace('\r', ""));
    }
    Ok(texts)
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(object: &'a Value, member: &str) -> &'a [Value] {
    object.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::collect;

    #[test]
    fn linked_packages_are_listed_with_their_texts_and_others_are_not() {
        let all = collect(&["crates/app"], "x86_64-unknown-linux-gnu").unwrap();
        let has = |name: &str| all.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(has("serde") && has("tokio") && has("rustls"), "linked");
        assert!(!has("mdbook-driver") && !has("proptest") && !has("app"), "built or tested with");
        assert!(all.contains("Permission is hereby granted, free of charge"), "the MIT licence");
    }
}
