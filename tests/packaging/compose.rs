//! The compose file: valid, consistent in itself, without secrets in variables, and with enough time to
//! drain.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use acceptance::root;
use serde_json::Value;

use crate::{
    SECONDS_AFTER_DRAIN,
    browser_hosts::OF_HOSTS,
    deployed,
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
fn service_and_host_are_confined_and_given_the_time_to_drain() {
    let file = parsed();
    for (name, runs_browsers) in [("avouch", false), ("browsers", true)] {
        let service = &file["services"][name];
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
        let mut options = strings(&service["security_opt"]);
        options.retain(|option| option != "no-new-privileges=true");
        let profile = options.iter().find_map(|option| option.strip_prefix("seccomp="));
        assert_eq!(profile.is_some(), runs_browsers, "{name}: {options:?}");
        assert_eq!(options.len(), if runs_browsers { 3 } else { 0 }, "{name}: {options:?}");
        if let Some(profile) = profile {
            assert!(root().join("deploy").join(profile).is_file(), "{profile}");
        }
        let drain = text(&service["environment"]["AVOUCH_DRAIN_SECONDS"]).parse::<u64>().unwrap();
        let source = interpolated();
        let (_, source) = source.split_once(&format!("\n  {name}:\n")).unwrap();
        let (_, period) = source.split_once("stop_grace_period: ").unwrap();
        let period = period.split_once("s\n").unwrap().0.parse::<u64>().unwrap();
        assert_eq!(period, drain + SECONDS_AFTER_DRAIN, "{name}");
    }
}

#[test]
fn the_browser_host_has_its_certificate_and_reaches_nothing() {
    let file = parsed();
    let (service, host) = (&file["services"]["avouch"], &file["services"]["browsers"]);
    assert_eq!(strings(&host["command"]), ["serve", "--role", "browser"]);
    assert_eq!(strings(&host["secrets"]), ["host_cert", "host_key", "instance_roots"]);
    assert!(host["volumes"].as_array().is_none_or(Vec::is_empty), "{}", host["volumes"]);
    let variables = host["environment"].as_object().unwrap();
    for variable in variables.keys() {
        assert!(OF_HOSTS.contains(&variable.as_str()), "{variable}");
    }
    // A network without a way out, of these two alone.
    assert_eq!(strings(&host["networks"]), ["browsers"]);
    assert_eq!(file["networks"]["browsers"]["internal"], true);
    let services = file["services"].as_object().unwrap().iter();
    let members = services
        .filter(|(_, service)| strings(&service["networks"]).contains(&"browsers".to_owned()));
    let members: Vec<_> = members.map(|(name, _)| name.as_str()).collect();
    assert_eq!(members, ["avouch", "browsers"]);
    // The service runs no browsers itself, and finds the host.
    let own = service["environment"].as_object().unwrap();
    assert_eq!(own["AVOUCH_ROLE"], "api,delivery");
    let (_, port) = text(&variables["AVOUCH_INSTANCE_LISTEN"]).rsplit_once(':').unwrap();
    assert_eq!(own["AVOUCH_BROWSER_HOSTS"], format!("browsers:{port}"));
    assert_eq!(own["AVOUCH_BROWSERS"], variables["AVOUCH_BROWSERS"]);
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
            let path = value.as_str().and_then(|value| value.strip_prefix("/run/secrets/"));
            assert!(path.is_some() || !is_file, "{name}: {variable}");
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
    let secrets = folder.path().join("secrets");
    let mode = fs::metadata(&secrets).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let verified = |name: &str, host: &str, purpose: &str| {
        let mut openssl = Command::new("openssl");
        openssl.args(["verify", "-CAfile", "instance_roots", "-verify_hostname", host]);
        openssl.args(["-purpose", purpose, name]).current_dir(&secrets);
        openssl.output().unwrap().status.success()
    };
    let (instance, host) = ("instance.avouch.internal", "browser-host.avouch.internal");
    assert!(verified("instance_cert", instance, "sslserver"));
    assert!(verified("instance_cert", instance, "sslclient"));
    assert!(verified("host_cert", host, "sslserver"));
    assert!(!verified("host_cert", host, "sslclient"), "a host connects to nobody");
    assert!(
        !verified("instance_cert", host, "sslserver")
            && !verified("host_cert", instance, "sslserver")
    );
    // The key of the authority is gone, and so is the folder in which it was.
    let mut left: Vec<_> =
        fs::read_dir(&secrets).unwrap().map(|file| file.unwrap().path()).collect();
    left.retain(|file| !file.is_file());
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(&secrets).unwrap().count(), created.len());
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
