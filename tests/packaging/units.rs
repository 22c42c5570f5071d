//! The units of systemd: valid, hardened as far as the browser sandbox permits, and with enough time to
//! drain.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output},
};

use crate::{SECONDS_AFTER_DRAIN, browser_hosts::OF_HOSTS, deployed};

/// The units, and the highest exposure that `systemd-analyze security` may report, from 0 to 100. The
/// values are 26 to 28, 14, and one less than the first, depending on the version of systemd.
const UNITS: [(&str, u32); 3] =
    [("avouch.service", 29), ("avouch-attestor.service", 15), (BROWSER_HOST, 28)];
const BROWSER_HOST: &str = "avouch-browser-host.service";
/// Units of the system that ours name.
const TARGETS: [&str; 6] =
    ["basic", "multi-user", "network", "network-online", "shutdown", "sysinit"];

#[test]
fn the_units_are_valid() {
    let system = tempfile::tempdir().unwrap();
    let (programs, units) =
        (system.path().join("usr/bin"), system.path().join("etc/systemd/system"));
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir_all(&units).unwrap();
    for target in TARGETS {
        let text = format!("[Unit]\nDescription={target}\n");
        fs::write(units.join(format!("{target}.target")), text).unwrap();
    }
    for (unit, _) in UNITS {
        let text = deployed(&format!("systemd/{unit}"));
        let program = value(&text, "ExecStart").split(' ').next().unwrap();
        let program = programs.join(program.strip_prefix("/usr/bin/").unwrap());
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(units.join(unit), text).unwrap();
    }
    let root = format!("--root={}", system.path().display());
    for (unit, _) in UNITS {
        let path = units.join(unit);
        let output = analyze(&["verify", "--man=no", &root, path.to_str().unwrap()]);
        // Unknown settings are warnings, with which it succeeds.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{unit}: {said}");
    }
}

#[test]
fn the_units_are_hardened() {
    let folder = tempfile::tempdir().unwrap();
    for (unit, most) in UNITS {
        let text = deployed(&format!("systemd/{unit}"));
        let exposed =
            format!("{text}\n[Service]\nPrivateTmp=no\nNoNewPrivileges=no\nProtectHome=no\n");
        for (text, is_hardened) in [(text, true), (exposed, false)] {
            let path = folder.path().join(unit);
            fs::write(&path, text).unwrap();
            let threshold = format!("--threshold={most}");
            let path = path.to_str().unwrap();
            let output = analyze(&["security", "--offline=true", "--no-pager", &threshold, path]);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.success(), is_hardened, "{unit}: {said}");
        }
    }
}

#[test]
fn the_service_is_given_the_time_to_drain() {
    for unit in ["avouch.service", BROWSER_HOST] {
        let text = deployed(&format!("systemd/{unit}"));
        let seconds = |key: &str| value(&text, key).parse::<u64>().unwrap();
        let drain = seconds("Environment=AVOUCH_DRAIN_SECONDS");
        assert_eq!(seconds("TimeoutStopSec"), drain + SECONDS_AFTER_DRAIN, "{unit}");
        // A signal to browsers would end their sessions at the beginning of the drain.
        assert_eq!(value(&text, "KillMode"), "mixed", "{unit}");
    }
}

#[test]
fn a_browser_host_has_nothing_but_its_certificate() {
    let unit = deployed(&format!("systemd/{BROWSER_HOST}"));
    let host = values(&unit, "Environment");
    for variable in &host {
        let name = variable.split('=').next().unwrap();
        assert!(OF_HOSTS.contains(&name), "{name}");
    }
    for key in ["LoadCredential", "SetCredential", "StateDirectory", "ReadWritePaths"] {
        assert!(values(&unit, key).is_empty(), "{key}");
    }
    // The folder of its certificate, which it can read and not write.
    let own = "/etc/avouch-browser-host/";
    let files = host.iter().filter_map(|variable| Some(variable.split_once("=/")?.1));
    let files: Vec<_> = files.map(|file| format!("/{file}")).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.iter().all(|file| file.starts_with(own)), "{files:?}");
    let hidden: Vec<_> = value(&unit, "InaccessiblePaths").split(' ').collect();
    for (other, _) in UNITS.iter().filter(|(unit, _)| *unit != BROWSER_HOST) {
        let text = deployed(&format!("systemd/{other}"));
        assert_ne!(value(&unit, "User"), value(&text, "User"), "{other}");
        let state = format!("-/var/lib/{}", value(&text, "StateDirectory"));
        let settings = format!("-/etc/{}", other.trim_end_matches(".service"));
        for folder in [state, settings] {
            assert!(hidden.contains(&folder.as_str()), "{folder} of {other} can be seen");
        }
    }
    assert_eq!(value(&unit, "IPAddressDeny"), "any", "it connects to nobody");
}

#[test]
fn every_user_of_a_unit_is_created() {
    let users = deployed("systemd/avouch.sysusers.conf");
    for (unit, _) in UNITS {
        let user = value(&deployed(&format!("systemd/{unit}")), "User").to_owned();
        assert!(users.lines().any(|line| line.starts_with(&format!("u {user} "))), "{user}");
    }
}

/// Returns the only value of a setting.
fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    let [value] = values(unit, key)[..] else { panic!("{key} has not one value") };
    value
}

/// Returns all values of a setting.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let prefix = format!("{key}=");
    unit.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
}

fn analyze(arguments: &[&str]) -> Output {
    Command::new("systemd-analyze").args(arguments).output().unwrap()
}
