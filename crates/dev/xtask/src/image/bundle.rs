//! What a container is made of: the Debian packages that the Dockerfile names, and the configuration of
//! the runtime (OCI runtime specification 1.0).

use std::path::Path;

use serde_json::{Value, json};

use crate::Failure;

/// The user of the image.
pub(super) const USER: u32 = 10_001;
const DATA_FOLDER: &str = "/var/lib/avouch";

/// Returns the release of Debian that the image is based on: `trixie` of `debian:trixie-slim`.
pub(super) fn suite(dockerfile: &str) -> Result<String, Failure> {
    let image = dockerfile.lines().find_map(|line| line.strip_prefix("ARG DEBIAN_IMAGE=debian:"));
    let suite = image.and_then(|tag| tag.split(['-', '@']).next());
    Ok(suite.ok_or("the Dockerfile names no release of Debian")?.to_owned())
}

/// Returns the packages that the last stage installs, without their versions.
pub(super) fn packages(dockerfile: &str) -> Result<Vec<String>, Failure> {
    let stage = dockerfile.rsplit("\nFROM ").next().unwrap_or_default();
    let (_, list) = stage
        .split_once("--no-install-recommends")
        .ok_or("the last stage of the Dockerfile installs no packages")?;
    let (list, _) = list.split_once("&&").ok_or("the list of packages has no end")?;
    let words = list.split(['\\', '\n', ' ']).filter(|word| !word.is_empty());
    // `"chromium${CHROMIUM_VERSION:+…}"`
    let names = words.filter_map(|word| word.trim_matches('"').split('$').next());
    Ok(names.map(str::to_owned).collect())
}

/// Returns the configuration of a container as the operator's guide asks for it: an unprivileged user
/// without capabilities, a read-only root, an unmasked `/proc`, and our profile.
pub(super) fn config(files: &Path, seccomp: &Value, port: u16) -> Value {
    let listen = format!("AVOUCH_LISTEN=127.0.0.1:{port}");
    let data = format!("AVOUCH_DATA_DIR={DATA_FOLDER}");
    let owner = format!("uid={USER},gid={USER},mode=700");
    let capabilities = json!({
        "bounding": [], "effective": [], "permitted": [], "inheritable": [], "ambient": [],
    });
    // The network is the machine's: a network of its own would need a bridge.
    let namespaces = ["pid", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.2",
        "hostname": "avouch",
        "root": { "path": files, "readonly": true },
        "process": {
            "user": { "uid": USER, "gid": USER },
            "cwd": DATA_FOLDER,
            "args": ["/usr/bin/tini", "--", "/usr/bin/avouch", "serve"],
            "env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", data, listen],
            "capabilities": capabilities,
            "noNewPrivileges": true,
        },
        "mounts": [
            { "destination": "/proc", "type": "proc", "source": "proc" },
            mount("/dev", "tmpfs", &["nosuid", "noexec", "mode=755", "size=64k"]),
            mount("/dev/pts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666"]),
            mount("/dev/shm", "tmpfs", &["nosuid", "nodev", "noexec", "mode=1777", "size=64m"]),
            mount("/dev/mqueue", "mqueue", &["nosuid", "nodev", "noexec"]),
            mount("/sys", "sysfs", &["nosuid", "nodev", "noexec", "ro"]),
            mount("/tmp", "tmpfs", &["nosuid", "nodev", "noexec", "mode=1777", "size=1g"]),
            mount(DATA_FOLDER, "tmpfs", &["nosuid", "nodev", "noexec", &owner]),
        ],
        "linux": {
            "namespaces": namespaces,
            "seccomp": seccomp,
            "maskedPaths": [],
            "readonlyPaths": [],
        },
    })
}

fn mount(destination: &str, kind: &str, options: &[&str]) -> Value {
    let options: Vec<_> = options.iter().flat_map(|option| option.split(',')).collect();
    json!({ "destination": destination, "type": kind, "source": kind, "options": options })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{packages, suite};
    use crate::command::root;

    #[test]
    fn the_packages_of_the_image_are_read() {
        let dockerfile = fs::read_to_string(root().join("deploy/image/Dockerfile")).unwrap();
        let packages = packages(&dockerfile).unwrap();
        for package in ["chromium", "chromium-sandbox-", "ffmpeg", "tini", "tzdata"] {
            assert!(packages.iter().any(|name| name == package), "{package}: {packages:?}");
        }
        assert!(!packages.iter().any(|name| name == "build-essential"), "{packages:?}");
        assert_eq!(suite("ARG DEBIAN_IMAGE=debian:trixie-slim@sha256:0").unwrap(), "trixie");
        assert!(suite(&dockerfile).is_ok() && suite("FROM x").is_err());
    }
}
