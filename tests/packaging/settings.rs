//! The names of settings in `deploy/` are those that the service reads.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use acceptance::root;

use crate::deployed;

/// Returns the names of all settings, in lower case.
pub(crate) fn known() -> BTreeSet<String> {
    names("KEYS")
}

/// Returns the names of the settings that may be in files.
pub(crate) fn secret() -> BTreeSet<String> {
    names("SECRETS")
}

/// Returns why a variable is none of the service's; `None` for variables of other programs too.
pub(crate) fn fault(variable: &str) -> Option<String> {
    let name = variable.strip_prefix("AVOUCH_")?.to_lowercase();
    let is_known = known().contains(&name)
        || name.strip_suffix("_file").is_some_and(|name| secret().contains(name));
    // The names that OpenTelemetry specifies have no prefix.
    let is_known = is_known && !name.starts_with("otel_");
    (!is_known).then(|| format!("{variable} is no setting of the service"))
}

#[test]
fn every_setting_that_deployments_name_exists() {
    let (mut named, mut faults) = (0, Vec::new());
    for file in files(&root().join("deploy")) {
        let text = fs::read_to_string(&file).unwrap();
        for variable in variables(&text) {
            named += 1;
            faults.extend(fault(variable).map(|fault| format!("{}: {fault}", file.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(named > 20, "only {named} settings were found in deploy/");
}

#[test]
fn a_setting_that_does_not_exist_is_found() {
    assert_eq!(variables("x=${AVOUCH_LISTENS:-1} MY_AVOUCH_X AVOUCH_"), ["AVOUCH_LISTENS"]);
    assert!(fault("AVOUCH_LISTENS").is_some() && fault("AVOUCH_LISTEN_FILE").is_some());
    assert!(fault("AVOUCH_OTEL_SERVICE_NAME").is_some());
    assert!(fault("AVOUCH_LISTEN").is_none() && fault("AVOUCH_REDIS_URL_FILE").is_none());
}

/// The chart refuses misspelt settings, and therefore has to list all of them.
#[test]
fn the_chart_accepts_exactly_the_settings_that_exist() {
    let schema: serde_json::Value =
        serde_json::from_str(&deployed("helm/avouch/values.schema.json")).unwrap();
    let listed = |pointer: &str| {
        let names = schema.pointer(pointer).unwrap().as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let secrets = "/properties/secrets/properties/files/propertyNames/enum";
    assert_eq!(listed(secrets), secret(), "{secrets} of values.schema.json");
    // Those that the chart sets itself, from other values.
    let own = [
        "listen",
        "role",
        "data_dir",
        "drain_seconds",
        "metrics_listen",
        "browser_jail",
        "migrate",
        "instance_listen",
        "instance_address",
        "instance_cert",
        "instance_key",
        "instance_roots",
    ];
    let own: BTreeSet<_> = own.map(str::to_owned).into();
    let expected: BTreeSet<_> = known().difference(&secret()).cloned().collect();
    let expected: BTreeSet<_> = expected.difference(&own).cloned().collect();
    let settings = "/properties/settings/propertyNames/enum";
    let listed = listed(settings);
    let missing: Vec<_> = expected.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&expected).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{settings} of values.schema.json: add {missing:?}, remove {unknown:?}"
    );
}

/// Reads a list in the source of the service's configuration.
fn names(list: &str) -> BTreeSet<String> {
    let source = fs::read_to_string(root().join("crates/app/src/config/names.rs")).unwrap();
    let (_, list) = source.split_once(&format!("{list}: &[&str] = &[")).unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let names: BTreeSet<_> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(names.len() > 5, "names.rs has another form");
    names
}

/// Returns the words that begin with the prefix of settings and have a name after it.
fn variables(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.strip_prefix("AVOUCH_").is_some_and(|name| !name.is_empty())).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
