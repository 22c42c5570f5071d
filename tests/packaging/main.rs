//! The files of `deploy/`: the chart renders to valid manifests, the compose file and the units are
//! valid, and all of them name settings that exist and wait for the drain.

mod browser_hosts;
mod chart;
mod compose;
mod image;
mod renderer;
mod settings;
mod units;

use std::fs;

use acceptance::root;

/// The time that a process has after the drain, for requests in flight and the end of its browsers.
const SECONDS_AFTER_DRAIN: u64 = 60;

/// Reads a file of `deploy/`.
fn deployed(path: &str) -> String {
    let path = root().join("deploy").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
