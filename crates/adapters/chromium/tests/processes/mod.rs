//! The processes of this machine, from `/proc`.

use std::{collections::BTreeSet, fs, time::Duration};

const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns every process of a group.
pub(crate) fn processes_of(group: i32) -> BTreeSet<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    let of_group = |name: &String| {
        let stat = read(name, "stat").unwrap_or_default();
        let own = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2));
        own.is_some_and(|own| own == group.to_string())
    };
    names.filter(of_group).collect()
}

pub(crate) fn parent_of(process: &str) -> Option<String> {
    let stat = read(process, "stat")?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
}

/// Waits until processes have exited; zombies count as such.
pub(crate) async fn gone(all: &BTreeSet<String>) {
    let deadline = tokio::time::Instant::now() + EXIT_TIMEOUT;
    let lives = |process: &String| read(process, "stat").is_some_and(|stat| !stat.contains(") Z "));
    while let Some(process) = all.iter().find(|process| lives(process)) {
        assert!(tokio::time::Instant::now() < deadline, "{process} still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn read(process: &str, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{file}")).ok()
}
