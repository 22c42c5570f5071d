//! `cargo xtask soak`: a deployment of several instances under faults for a long time.

use crate::{
    Failure,
    command::{cargo, root, run},
    packages::{self, BALANCER, BROWSER, FFMPEG, POSTGRES, REDIS},
    tools,
};

/// Applicants at once unless told otherwise: each of them has a browser, and so has their session.
const APPLICANTS: std::ops::RangeInclusive<usize> = 2..=4;

#[derive(clap::Args)]
pub(crate) struct SoakOptions {
    /// For how long processes are killed, 1 to 1440; it takes up to ten minutes more until everything has settled
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=1440))]
    minutes: u16,
    /// Applicants at once, 1 to 16; unless given, as many as there are cores, but 2 to 4
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=16))]
    applicants: Option<u16>,
    /// Runs the release build
    #[arg(long)]
    release: bool,
}

/// Runs the soak test with servers of its own; fails if anything is stuck, lost or left.
pub(crate) fn soak(options: &SoakOptions) -> Result<(), Failure> {
    packages::ensure(&[BALANCER, BROWSER, FFMPEG, POSTGRES, REDIS])?;
    tools::bucket_server()?;
    let profile: &[&str] = if options.release { &["--release"] } else { &[] };
    // The test runs the program that is beside it.
    run(&mut cargo(&[&["build", "--locked", "--package", "app", "--bins"], profile].concat()))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = cores.clamp(*APPLICANTS.start(), *APPLICANTS.end());
    let applicants = options.applicants.map_or(usual, usize::from);
    let test = ["test", "--locked", "--package", "acceptance", "--test", "resilience"];
    let name = "soak::nothing_is_stuck_lost_or_left_while_processes_are_killed";
    let only = ["--", "--ignored", "--exact", "--nocapture", name];
    let mut command = cargo(&[&test[..], profile, &only].concat());
    command
        .env("SOAK_MINUTES", options.minutes.to_string())
        .env("SOAK_APPLICANTS", applicants.to_string())
        .env("SOAK_FOLDER", root().join("target/soak"));
    run(&mut command)
}
