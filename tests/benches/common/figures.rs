//! Figures with their baseline, and the cost of processes.

use std::{fs, path::Path, time::Duration};

use acceptance::{applicant::Applicant, processes::process_ids_with, root};
use serde_json::{Value, json};

/// The figures of a run.
pub(crate) struct Sheet {
    name: &'static str,
    base: &'static str,
    figures: Vec<Value>,
}

impl Sheet {
    pub(crate) fn new(name: &'static str, base: &'static str) -> Self {
        println!("baseline: {base}");
        Self { name, base, figures: vec![] }
    }

    /// Adds a figure as a ratio to its baseline.
    pub(crate) fn add(&mut self, name: &str, unit: &str, value: f64, base: f64) {
        let ratio = value / base;
        println!("{name}: {value:.1} {unit}, base {base:.1} {unit}, ratio {ratio:.2}");
        self.figures.push(json!({ "name": name, "unit": unit, "value": value, "base": self.base, "baseValue": base, "ratio": ratio }));
    }

    /// Adds a figure as a difference to raw DevTools.
    pub(crate) fn beside(&mut self, name: &str, unit: &str, value: f64, base: f64) {
        self.beside_named(name, unit, value, "raw DevTools", base);
    }

    /// Adds a figure as a difference to what is named.
    pub(crate) fn beside_named(
        &mut self,
        name: &str,
        unit: &str,
        value: f64,
        what: &str,
        base: f64,
    ) {
        let more = value - base;
        println!("{name}: {value:.1} {unit}, {what} {base:.1} {unit}, {more:+.1} {unit}");
        self.figures.push(json!({ "name": name, "unit": unit, "value": value, "base": what, "baseValue": base, "difference": more }));
    }

    pub(crate) fn costs(&mut self, count: usize, ours: Cost, base: Cost) {
        self.add(
            &format!("memory of a session (PSS), {count} at once"),
            "MiB",
            ours.memory,
            base.memory,
        );
        self.add(
            &format!("cores of a session while typing, {count} at once"),
            "",
            ours.cores,
            base.cores,
        );
    }

    pub(crate) fn write(self) {
        let folder = root().join("target/bench");
        fs::create_dir_all(&folder).expect("a folder");
        let report = serde_json::to_string_pretty(&json!({ "figures": self.figures }));
        let file = folder.join(format!("{}.json", self.name));
        fs::write(file, report.expect("a report")).expect("a file");
    }
}

/// The cost of one of several sessions, browsers and server divided by their number.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// MiB, shared pages counted proportionally (PSS).
    memory: f64,
    cores: f64,
}

/// Types in all sessions at once for a while, and samples the processes before and after.
pub(crate) async fn cost_of(viewers: &[Applicant], folder: &Path, server: u32) -> Cost {
    let pids: Vec<u32> = process_ids_with(folder).into_iter().chain([server]).collect();
    let time = || pids.iter().map(|pid| ticks(*pid)).sum::<f64>();
    let (before, began) = (time(), std::time::Instant::now());
    for _ in 0..ROUNDS {
        for viewer in viewers {
            viewer.evaluate(KEY).await;
        }
        tokio::time::sleep(KEY_INTERVAL).await;
    }
    let cores = (time() - before) / TICKS / began.elapsed().as_secs_f64();
    let memory = pids.iter().map(|pid| memory(*pid)).sum::<f64>();
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let count = viewers.len() as f64;
    Cost { memory: memory / count, cores: cores / count }
}

/// The number of keys for each session, and the time between two.
const ROUNDS: usize = 16;
const KEY_INTERVAL: Duration = Duration::from_millis(330);
const KEY: &str = "for (const type of ['keydown', 'keyup']) document.querySelector('canvas').dispatchEvent(new \
    KeyboardEvent(type, { key: 'a', code: 'KeyA', keyCode: 65, bubbles: true, cancelable: true }))";
/// Ticks of a process's CPU time per second, as the kernel counts them (proc(5)).
pub(crate) const TICKS: f64 = 100.0;

/// Returns the CPU time of a process on all cores, in ticks.
pub(crate) fn ticks(pid: u32) -> f64 {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = line.rsplit(')').next().unwrap_or_default();
    let times = fields.split_whitespace().skip(11).take(2);
    times.filter_map(|time| time.parse::<f64>().ok()).sum()
}

fn memory(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Returns the value at a percentile.
pub(crate) fn at(values: &mut [f64], percentile: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * percentile / 100]
}
