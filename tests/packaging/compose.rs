//! The compose file: valid, consistent in itself, without secrets in variables, and with enough time to
//! drain.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use acceptance::root;
use serde_json::Value;

use crate::{
    SECONDS_AFTER_DRAIN, deployed,
    renderer::{compose, strings, text},
    settings,
};

#[test]
fn the_file_is_valid_and_names_what_it_defines() {
    let file = parsed();
    let names = |value: &Value| -> Vec<String> {
        value.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
    };
    for (name, service) in file["services"].as_object().unwrap() {
        for kind in ["networks", "secrets"] {
            for used in strings(&service[kind]) {
                assert!(names(&file[kind]).contains(&used), "{name}: {kind} has no {used}");
            }
        }
        for mount in strings(&service["volumes"]) {
            let volume = mount.split(':').next().unwrap().to_owned();
            assert!(names(&file["volumes"]).contains(&volume), "{name}: no volume {volume}");
        }
        for needed in names(&service["depends_on"]) {
            assert!(file["services"].get(&needed).is_some(), "{name}: no service {needed}");
        }
    }
}

#[test]
fn a_file_that_is_not_valid_is_refused() {
    let file = interpolated();
    for (right, wrong) in [
        ("read_only: true", "readonly: true"),
        ("condition: service_healthy", "condition: service_well"),
        ("interval: 5s", "interval: 5 beats"),
    ] {
        assert!(compose(&file.replacen(right, wrong, 1)).is_err(), "{wrong}");
    }
}

#[test]
fn the_service_is_confined_and_given_the_time_to_drain() {
    let file = parsed();
    let service = &file["services"]["avouch"];
    assert_eq!(service["read_only"], true);
    assert_eq!(strings(&service["cap_drop"]), ["ALL"]);
    let options = strings(&service["security_opt"]);
    assert!(options.contains(&"no-new-privileges=true".to_owned()), "{options:?}");
    let profile = options.iter().find_map(|option| option.strip_prefix("seccomp=")).unwrap();
    assert!(root().join("deploy").join(profile).is_file(), "{profile}");
    let drain = text(&service["environment"]["AVOUCH_DRAIN_SECONDS"]).parse::<u64>().unwrap();
    let source = interpolated();
    let (_, period) = source.split_once("stop_grace_period: ").unwrap();
    let period = period.split_once("s\n").unwrap().0.parse::<u64>().unwrap();
    assert_eq!(period, drain + SECONDS_AFTER_DRAIN);
}

#[test]
fn no_secret_is_the_value_of_a_variable() {
    let file = parsed();
    for (name, service) in file["services"].as_object().unwrap() {
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            let key = variable.strip_prefix("AVOUCH_").unwrap_or_default().to_lowercase();
            assert!(!settings::secret().contains(&key), "{name}: {variable}");
            let is_file = variable.ends_with("_FILE");
            let hides = ["PASSWORD", "SECRET", "TOKEN"].iter().any(|word| variable.contains(word));
            assert!(is_file || !hides, "{name}: {variable}");
            let path = if is_file { text(value).strip_prefix("/run/secrets/") } else { None };
            let is_mounted =
                path.is_none_or(|path| strings(&service["secrets"]).contains(&path.to_owned()));
            assert!(is_mounted, "{name}: {variable} names a secret that it does not have");
        }
    }
}

#[test]
fn the_script_creates_every_secret_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("secrets.sh");
    fs::write(&script, deployed("compose/secrets.sh")).unwrap();
    let file = parsed();
    let secrets = file["secrets"].as_object().unwrap();
    let run = || {
        assert!(Command::new("sh").arg(&script).status().unwrap().success());
        let read = secrets.values().map(|secret| {
            let path = text(&secret["file"]).strip_prefix("compose/").unwrap();
            fs::read_to_string(folder.path().join(path)).unwrap()
        });
        read.collect::<Vec<_>>()
    };
    let created = run();
    assert!(created.iter().all(|secret| secret.trim().len() > 20), "a secret is short");
    assert_eq!(run(), created, "existing secrets stay as they are");
    let mode = fs::metadata(folder.path().join("secrets")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

fn parsed() -> Value {
    compose(&interpolated()).unwrap()
}

/// The file with its variables replaced, as the program that reads it does first.
fn interpolated() -> String {
    let mut file = deployed("compose.yaml");
    while let Some((before, (name, after))) =
        file.split_once("${").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        let value = match name.split(':').next() {
            Some("RELEASE") => "0.1.0",
            Some("AVOUCH_PUBLIC_URL") => "https://avouch.example",
            _ => panic!("{name} has no value"),
        };
        file = format!("{before}{value}{after}");
    }
    file.replace("$$", "$")
}
