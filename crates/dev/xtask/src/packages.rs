//! The system packages that the machine needs in addition to Rust.

use std::{path::Path, process::Command};

use crate::{
    Failure,
    command::{found, run},
};

/// A program that the system may lack: how its presence is detected, and the Debian packages that
/// provide it.
pub(crate) struct Need {
    present: fn() -> bool,
    packages: &'static [&'static str],
}

/// The browser that the service runs.
pub(crate) const BROWSER: Need =
    Need { present: || found("chromium"), packages: &["chromium", "fonts-liberation"] };
/// Encodes recordings.
pub(crate) const FFMPEG: Need = Need { present: || found("ffmpeg"), packages: &["ffmpeg"] };
pub(crate) const POSTGRES: Need =
    Need { present: || postgres_server::binaries().is_some(), packages: &["postgresql"] };
/// Generates load.
pub(crate) const WRK: Need = Need { present: || found("wrk"), packages: &["wrk"] };
pub(crate) const REDIS: Need =
    Need { present: || found("redis-server"), packages: &["redis-server"] };
/// The load balancer in front of several instances.
pub(crate) const BALANCER: Need = Need {
    present: || Path::new("/usr/sbin/haproxy").exists() || found("haproxy"),
    packages: &["haproxy"],
};
/// Runs the programs that exercise the interface description.
pub(crate) const PYTHON: Need = Need {
    present: || {
        let venv = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
        venv.is_ok_and(|output| output.status.success())
    },
    packages: &["python3", "python3-venv"],
};
pub(crate) const PROXIES: Need = Need {
    present: || found("tinyproxy") && found("microsocks"),
    packages: &["tinyproxy-bin", "microsocks"],
};
/// Sets up networks of several namespaces and captures every packet in them.
pub(crate) const NETWORKS: Need = Need {
    present: || found("ip") && found("tcpdump") && found("unshare"),
    packages: &["iproute2", "tcpdump", "util-linux"],
};
/// Reads text in the frames of recordings, to show that no secret is in them.
pub(crate) const OCR: Need = Need { present: || found("tesseract"), packages: &["tesseract-ocr"] };
/// Type-checks the embed page and a generated client; neither building nor running needs it.
pub(crate) const NODE: Need = Need { present: || found("npm"), packages: &["nodejs", "npm"] };

/// Runs Selenium Grid with the system's Chromium.
pub(crate) const SELENIUM: Need = Need {
    present: || found("java") && found("chromedriver"),
    packages: &["default-jre-headless", "chromium-driver"],
};
/// Sets the clock of one program.
pub(crate) const FAKETIME: Need = Need {
    present: || {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
        files.any(|file| file.exists())
    },
    packages: &["libfaketime"],
};
/// Checks the units of systemd; it does not have to run.
pub(crate) const SYSTEMD: Need =
    Need { present: || found("systemd-analyze"), packages: &["systemd"] };
/// Runs a container without an engine, on a root file system made of Debian's packages.
pub(crate) const CONTAINER: Need =
    Need { present: || found("runc") && found("mmdebstrap"), packages: &["mmdebstrap", "runc"] };

/// Installs what is missing where that is possible; the error otherwise names the packages to
/// install.
pub(crate) fn ensure(needs: &[Need]) -> Result<(), Failure> {
    let missing = needs.iter().filter(|need| !(need.present)());
    let packages: Vec<_> = missing.flat_map(|need| need.packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!("sudo apt-get install {}", packages.join(" "));
    if !found("apt-get") {
        return Err(format!("missing here: {} (on Debian: {by_hand})", packages.join(", ")).into());
    }
    let Some(prefix) = privileged() else {
        return Err(format!("may not install packages here; please run: {by_hand}").into());
    };
    let apt = |arguments: &[&str]| {
        let words = [prefix, &["apt-get"], arguments].concat();
        let (program, rest) = words.split_first().ok_or("no command")?;
        run(Command::new(program).args(rest).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-q"])?;
    apt(&[&["install", "-y", "-q", "--no-install-recommends"], packages.as_slice()].concat())
}

/// Returns the command prefix that permits the installation of packages, if there is one.
fn privileged() -> Option<&'static [&'static str]> {
    if rustix::process::geteuid().is_root() {
        return Some(&[]);
    }
    let sudo = Command::new("sudo").args(["-n", "true"]).output();
    sudo.is_ok_and(|output| output.status.success()).then_some(&["sudo", "-n"])
}
