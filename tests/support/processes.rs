//! The processes of this machine, by what they were started with.

use std::{fs, path::Path};

/// The command lines of all processes that have this path in them.
pub fn processes_with(path: &Path) -> Vec<String> {
    all_processes(path).map(|(_, line)| line).collect()
}

/// The same processes, by their numbers.
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
