//! Processes of this machine, found by their command lines.

use std::{fs, path::Path};

/// Returns the command lines of all processes that contain this path.
pub fn processes_with(path: &Path) -> Vec<String> {
    all_processes(path).map(|(_, line)| line).collect()
}

/// Returns the ids of these processes.
pub fn process_ids_with(path: &Path) -> Vec<u32> {
    all_processes(path).map(|(pid, _)| pid).collect()
}

fn all_processes(path: &Path) -> impl Iterator<Item = (u32, String)> {
    let path = path.display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    lines.filter(move |(_, line)| line.contains(&path))
}
