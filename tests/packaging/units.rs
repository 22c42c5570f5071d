//! The units of systemd: valid, hardened as far as the browser sandbox permits, and with enough time to
//! drain.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Output},
};

use crate::{SECONDS_AFTER_DRAIN, deployed};

/// The units, and the highest exposure that `systemd-analyze security` may report, from 0 to 100. The
/// values are 26 to 28 and 14, depending on the version of systemd.
const UNITS: [(&str, u32); 2] = [("avouch.service", 29), ("avouch-attestor.service", 15)];
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
        let program = programs.join(unit.trim_end_matches(".service"));
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(units.join(unit), deployed(&format!("systemd/{unit}"))).unwrap();
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
    let unit = deployed("systemd/avouch.service");
    let seconds = |key: &str| value(&unit, key).parse::<u64>().unwrap();
    let (drain, stop) = (seconds("Environment=AVOUCH_DRAIN_SECONDS"), seconds("TimeoutStopSec"));
    assert_eq!(stop, drain + SECONDS_AFTER_DRAIN);
    // A signal to browsers would end their sessions at the beginning of the drain.
    assert_eq!(value(&unit, "KillMode"), "mixed");
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
    let prefix = format!("{key}=");
    let values: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix(&prefix)).collect();
    let [value] = values[..] else { panic!("{key} has not one value") };
    value
}

fn analyze(arguments: &[&str]) -> Output {
    Command::new("systemd-analyze").args(arguments).output().unwrap()
}
