//! The image and its seccomp profile: an unprivileged user, and the system calls that the sandbox of
//! browsers needs.

use std::{collections::BTreeSet, fs};

use acceptance::root;
use serde_json::Value;

use crate::{
    deployed,
    renderer::{strings, text},
};

/// The calls with which our own program sets the sandbox up (`sandbox/helper`), beside those that it
/// permits to browsers, and the calls that have rules of their own there.
const SETUP: [&str; 9] = [
    "clone",
    "ioctl",
    "mount",
    "pivot_root",
    "sethostname",
    "socket",
    "socketpair",
    "umount2",
    "unshare",
];
/// Calls that the default profile of container engines does not permit to a container without
/// capabilities, or that give access to other processes or to much of the kernel.
const REFUSED: [&str; 16] = [
    "add_key",
    "bpf",
    "clone3",
    "fsopen",
    "init_module",
    "io_uring_setup",
    "kexec_load",
    "keyctl",
    "move_mount",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "process_vm_readv",
    "ptrace",
    "setns",
    "userfaultfd",
];

#[test]
fn the_profile_permits_what_the_sandbox_needs_and_no_more() {
    let allowed = allowed_calls();
    let source = "crates/adapters/chromium/src/sandbox/helper/syscalls/allowed.rs";
    let source = fs::read_to_string(root().join(source)).unwrap();
    let of_browsers: BTreeSet<_> = source
        .split("libc::SYS_")
        .skip(1)
        .filter_map(|rest| rest.split(',').next().map(str::to_owned))
        .collect();
    assert!(of_browsers.len() > 200, "allowed.rs has another form");
    let needed = of_browsers.iter().cloned().chain(SETUP.map(str::to_owned));
    let missing: Vec<_> = needed.filter(|name| !allowed.contains(name)).collect();
    assert!(missing.is_empty(), "deploy/image/seccomp.json does not permit {missing:?}");
    let too_many: Vec<_> = REFUSED.iter().filter(|name| allowed.contains(**name)).collect();
    assert!(too_many.is_empty(), "deploy/image/seccomp.json permits {too_many:?}");
}

#[test]
fn every_entry_of_the_profile_is_explained_and_read_alike_by_all_engines() {
    let profile = profile();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    // ENOSYS, on which libraries fall back to older calls.
    assert_eq!(profile["defaultErrnoRet"], 38);
    let mut seen = BTreeSet::new();
    for entry in profile["syscalls"].as_array().unwrap() {
        assert_eq!(entry["action"], "SCMP_ACT_ALLOW");
        assert!(text(&entry["comment"]).ends_with('.'), "{entry}");
        // Kubernetes passes the profile to the runtime as it is, which ignores these.
        for unknown in ["includes", "excludes"] {
            assert!(entry.get(unknown).is_none(), "{entry}");
        }
        for name in strings(&entry["names"]) {
            let is_new = seen.insert(name.clone());
            assert!(is_new || name == "socket", "{name} is listed twice");
        }
    }
    assert!(profile.get("archMap").is_none());
}

#[test]
fn the_image_runs_as_an_unprivileged_user_and_has_no_secret() {
    let dockerfile = deployed("image/Dockerfile");
    let lines: Vec<_> = dockerfile.lines().map(str::trim).collect();
    let last = |word: &str| lines.iter().rev().find_map(|line| line.strip_prefix(word)).unwrap();
    // The chart states the same numbers.
    assert_eq!(last("USER "), "10001:10001");
    assert_eq!(last("VOLUME "), "/var/lib/avouch");
    let first = last("ENTRYPOINT ");
    assert!(first.starts_with(r#"["/usr/bin/tini""#), "{first} does not reap processes");
    for line in lines.iter().filter_map(|line| line.strip_prefix("FROM ")) {
        assert!(line.starts_with("${"), "{line}: the version of a base image is an argument");
    }
    for word in ["SECRET", "PASSWORD", "TOKEN", "_URL="] {
        assert!(!dockerfile.contains(word), "{word}");
    }
}

fn allowed_calls() -> BTreeSet<String> {
    let profile = profile();
    let entries = profile["syscalls"].as_array().unwrap();
    entries.iter().flat_map(|entry| strings(&entry["names"])).collect()
}

fn profile() -> Value {
    serde_json::from_str(&deployed("image/seccomp.json")).unwrap()
}
