//! Load from outside, and figures with a baseline measured in the same run.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::service::Deployment;

const CONNECTIONS: &str = "64";
const SECONDS: &str = "4";
/// A figure and its baseline are measured alternately, and the median of the ratios counts.
const ROUNDS: usize = 3;

/// The result of one run of a load generator.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Runs wrk with 64 connections.
#[must_use]
pub fn wrk(arguments: &[&str]) -> Run {
    let load = ["-t2", "-c", CONNECTIONS, "-d", SECONDS, "--latency"];
    let output = Command::new("wrk").args(load).args(arguments).output().expect("wrk");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let find = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_else(|| panic!("{text}"))
    };
    let millis = |text: &str| match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        number if text.ends_with("us") => number.parse::<f64>().expect("a time") / 1e3,
        number if text.ends_with("ms") => number.parse().expect("a time"),
        number => number.parse::<f64>().expect("a time") * 1e3,
    };
    Run {
        per_second: find("Requests/sec:").parse().expect("a rate"),
        p50_ms: millis(find("50%")),
        p99_ms: millis(find("99%")),
    }
}

/// Runs pgbench with this many connections, which execute a script repeatedly.
#[must_use]
pub fn pgbench(deployment: &Deployment, clients: u32, script: &str) -> Run {
    let file = deployment.folder.path().join("script.sql");
    fs::write(&file, script).expect("a script");
    let program = std::env::var("PGBENCH").map_or_else(|_| PathBuf::from("pgbench"), PathBuf::from);
    let output = Command::new(program)
        .args(["-n", "-M", "prepared", "-j", "2", "-T", SECONDS, "-c", &clients.to_string(), "-f"])
        .arg(&file)
        .arg(&deployment.database.url)
        .output()
        .expect("pgbench");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        let complaint = String::from_utf8_lossy(&output.stderr);
        number.and_then(|n| n.parse::<f64>().ok()).unwrap_or_else(|| panic!("{text}{complaint}"))
    };
    let mean = after("latency average = ");
    Run { per_second: after("tps = "), p50_ms: mean, p99_ms: f64::NAN }
}

/// Measures both alternately and prints the pair with the median ratio.
pub fn compare(name: &str, mine: impl Fn() -> Run, base: &str, other: impl Fn() -> Run) -> Value {
    let mut pairs: Vec<_> = (0..ROUNDS).map(|_| (mine(), other())).collect();
    let ratio = |(mine, other): &(Run, Run)| mine.per_second / other.per_second;
    pairs.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let (mine, other) = pairs[ROUNDS / 2];
    let ratio = mine.per_second / other.per_second;
    println!(
        "{name}: {:.0}/s, p50 {:.2} ms, p99 {:.2} ms; {base}: {:.0}/s; ratio {ratio:.2}",
        mine.per_second, mine.p50_ms, mine.p99_ms, other.per_second
    );
    json!({
        "name": name, "perSecond": mine.per_second, "p50Ms": mine.p50_ms, "p99Ms": mine.p99_ms,
        "base": base, "basePerSecond": other.per_second, "ratio": ratio,
    })
}
