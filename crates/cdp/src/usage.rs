//! What a browser takes of the machine, as `/proc` tells (proc(5)).

use std::{
    collections::{HashMap, HashSet},
    fs,
};

/// The longest line of descent that is followed; a browser has at most so many processes.
const GENERATIONS: usize = 1024;

/// Private memory of each of these processes with their groups and descendants, in bytes; a process
/// that leaves its group is a descendant still. Sums what is resident and not shared: a little less
/// than the proportional set size, at a hundredth of its cost.
pub(crate) fn memory_below(roots: &HashSet<i32>) -> HashMap<i32, u64> {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut sums = HashMap::<i32, u64>::new();
    let Ok(processes) = fs::read_dir("/proc") else { return sums };
    let mut all = HashMap::new();
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read = |file| fs::read_to_string(process.path().join(file)).ok();
        let own =
            read("stat").as_deref().and_then(family).zip(read("statm").as_deref().and_then(pages));
        if let Some(own) = own {
            all.insert(pid, own);
        }
    }
    for (pid, ((_, group), pages)) in &all {
        let above = |pid: &i32| all.get(pid).map(|((parent, _), _)| *parent);
        let line = std::iter::successors(Some(*pid), above).take(GENERATIONS);
        if let Some(root) = line.chain([*group]).find(|one| roots.contains(one)) {
            let sum = sums.entry(root).or_default();
            *sum = sum.saturating_add(pages.saturating_mul(page));
        }
    }
    sums
}

/// The parent and the process group: the second and third word after the name, which may hold
/// anything.
fn family(stat: &str) -> Option<(i32, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Pages that are resident and not shared.
fn pages(statm: &str) -> Option<u64> {
    let mut words = statm.split_ascii_whitespace().skip(1).map_while(|word| word.parse().ok());
    let (resident, shared): (u64, u64) = (words.next()?, words.next()?);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_pretend_to_be_more() {
        assert_eq!(family("12 (a) S 1 99 (b)) S 1 34 12 0 -1"), Some((1, 34)));
        assert_eq!(family("12"), None);
        assert_eq!(pages("1000 300 100 1 0 200 0"), Some(200));
        assert_eq!(pages("1000"), None);
    }

    #[test]
    fn a_process_that_leaves_its_group_is_counted() {
        use std::{os::unix::process::CommandExt as _, process::Command, time::Duration};
        let mut shell = Command::new("sh");
        // 50 MB in a session, and so a process group, of its own.
        let hungry = "setsid perl -e '$_ = q(x) x 50_000_000; sleep 60' & wait";
        let mut shell = shell.args(["-c", hungry]).process_group(0).spawn().unwrap();
        let root = i32::try_from(shell.id()).unwrap();
        let taken = || memory_below(&HashSet::from([root])).get(&root).copied().unwrap_or_default();
        let enough = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            taken() > 40_000_000
        });
        let pid = rustix::process::Pid::from_child(&shell);
        for child in children(root) {
            let child = rustix::process::Pid::from_raw(child).unwrap();
            let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
        }
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        shell.wait().unwrap();
        assert!(enough, "it was not counted");
    }

    fn children(of: i32) -> Vec<i32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let stat = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        pids.filter(|pid| family(&stat(pid)).is_some_and(|(parent, _)| parent == of)).collect()
    }

    #[test]
    fn our_own_processes_take_something() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(
            memory_below(&HashSet::from([own])).get(&own).is_some_and(|bytes| *bytes > 100_000)
        );
    }
}
