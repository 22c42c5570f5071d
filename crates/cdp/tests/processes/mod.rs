//! The processes of this machine.

use std::{collections::BTreeSet, fs, time::Duration};

const PATIENCE: Duration = Duration::from_secs(20);

/// Every process of a group.
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

/// Waits until processes have ended; zombies have.
pub(crate) async fn gone(all: &BTreeSet<String>) {
    let ends = tokio::time::Instant::now() + PATIENCE;
    let lives = |one: &String| read(one, "stat").is_some_and(|stat| !stat.contains(") Z "));
    while let Some(one) = all.iter().find(|one| lives(one)) {
        assert!(tokio::time::Instant::now() < ends, "{one} is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn read(process: &str, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/{file}")).ok()
}
