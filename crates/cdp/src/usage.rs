//! What a browser takes of the machine, as `/proc` tells (proc(5)).

use std::{collections::HashMap, fs};

/// Memory of each process group that belongs to it alone, in bytes. Sums what is resident and not
/// shared: a little less than the proportional set size, at a hundredth of its cost.
pub(crate) fn memory_by_group() -> HashMap<i32, u64> {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut groups = HashMap::<i32, u64>::new();
    let Ok(processes) = fs::read_dir("/proc") else { return groups };
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let read = |file| fs::read_to_string(process.path().join(file)).ok();
        let own =
            read("stat").as_deref().and_then(group).zip(read("statm").as_deref().and_then(pages));
        if let Some((group, pages)) = own {
            let sum = groups.entry(group).or_default();
            *sum = sum.saturating_add(pages.saturating_mul(page));
        }
    }
    groups
}

/// The process group: the third word after the name, which may hold anything.
fn group(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()
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
        assert_eq!(group("12 (a) S 1 99 (b)) S 1 34 12 0 -1"), Some(34));
        assert_eq!(group("12"), None);
        assert_eq!(pages("1000 300 100 1 0 200 0"), Some(200));
        assert_eq!(pages("1000"), None);
    }

    #[test]
    fn our_own_group_takes_something() {
        let own = rustix::process::getpgrp().as_raw_nonzero().get();
        assert!(memory_by_group().get(&own).is_some_and(|bytes| *bytes > 100_000));
    }
}
