//! The memory usage of browsers, from `/proc` (proc(5)).

use std::{
    collections::{HashMap, HashSet},
    fs,
};

/// Ancestors of a process that are followed; a browser has at most this many processes.
const MAX_ANCESTORS: usize = 1024;

/// Returns the private memory in bytes of each of these processes with their groups and descendants;
/// a process that leaves its group is still a descendant. Sums resident pages that are not shared:
/// a little less than the proportional set size, at a hundredth of its cost.
pub(crate) fn memory_by_root(roots: &HashSet<i32>) -> HashMap<i32, u64> {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut sums = HashMap::<i32, u64>::new();
    let Ok(processes) = fs::read_dir("/proc") else { return sums };
    let mut all = HashMap::new();
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read = |file| fs::read_to_string(process.path().join(file)).ok();
        let process = read("stat")
            .as_deref()
            .and_then(parent_and_group)
            .zip(read("statm").as_deref().and_then(private_pages));
        if let Some(process) = process {
            all.insert(pid, process);
        }
    }
    for (pid, ((_, group), pages)) in &all {
        let parent = |pid: &i32| all.get(pid).map(|((parent, _), _)| *parent);
        let ancestors = std::iter::successors(Some(*pid), parent).take(MAX_ANCESTORS);
        if let Some(root) = ancestors.chain([*group]).find(|pid| roots.contains(pid)) {
            let sum = sums.entry(root).or_default();
            *sum = sum.saturating_add(pages.saturating_mul(page));
        }
    }
    sums
}

/// Returns the parent and the process group: the second and third word after the name, which may
/// contain any characters.
fn parent_and_group(stat: &str) -> Option<(i32, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Returns the number of pages that are resident and not shared.
fn private_pages(statm: &str) -> Option<u64> {
    let mut words = statm.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok());
    let (resident, shared): (u64, u64) = (words.next()?, words.next()?);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_imitate_other_fields() {
        assert_eq!(parent_and_group("12 (a) S 1 99 (b)) S 1 34 12 0 -1"), Some((1, 34)));
        assert_eq!(parent_and_group("12"), None);
        assert_eq!(private_pages("1000 300 100 1 0 200 0"), Some(200));
        assert_eq!(private_pages("1000"), None);
    }

    #[test]
    fn a_process_that_leaves_its_group_is_counted() {
        use std::{os::unix::process::CommandExt as _, process::Command, time::Duration};
        let mut shell = Command::new("sh");
        // 50 MB in a session, and so a process group, of its own.
        let command = "setsid perl -e '$_ = q(x) x 50_000_000; sleep 60' & wait";
        let mut shell = shell.args(["-c", command]).process_group(0).spawn().unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let usage =
            || memory_by_root(&HashSet::from([root])).get(&root).copied().unwrap_or_default();
        let counted = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            usage() > 40_000_000
        });
        let pid = rustix::process::Pid::from_child(&shell);
        for child in children(root) {
            let child = rustix::process::Pid::from_raw(child).unwrap();
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        shell.wait().unwrap();
        assert!(counted, "its memory is not counted");
    }

    fn children(of: i32) -> Vec<i32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let stat = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        pids.filter(|pid| parent_and_group(&stat(pid)).is_some_and(|(parent, _)| parent == of))
            .collect()
    }

    #[test]
    fn the_own_process_uses_memory() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(
            memory_by_root(&HashSet::from([own])).get(&own).is_some_and(|bytes| *bytes > 100_000)
        );
    }
}
