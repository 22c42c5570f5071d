//! The search for data that the attestor must not see.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
};

use acceptance::{contains, service::Deployment};

/// Data that neither the attestor nor any later party may see: the session's cookie and a second
/// one, a cookie that the response sets, and members of the response that are not declared. A
/// cookie's name only occurs before its value.
pub(super) const CANARIES: [&str; 5] =
    ["acme_sid=", "acme_consent=", "acme_seen=", "ada.example@mail.test", "4000 0566 5566 5556"];

/// Searches the database and all files that the service and its attestor wrote.
pub(super) async fn assert_found_nowhere(deployment: &Deployment) {
    let dump = deployment.database.dump().await;
    for canary in CANARIES {
        assert!(!dump.contains(canary), "{canary} in the database");
    }
    let mut folders = vec![deployment.folder.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(bytes) = fs::read(entry.path())
            {
                files += 1;
                for canary in CANARIES {
                    assert!(
                        !contains(&bytes, canary.as_bytes()),
                        "{canary} in {}",
                        entry.path().display()
                    );
                }
            }
        }
    }
    assert!(files > 3, "only {files} files were searched");
}

/// Returns whether the memory of a process or of its children contains a text.
pub(super) fn memory_contains(pid: u32, text: &str) -> bool {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of_tasks = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: String = of_tasks.chain(children.ok()).collect::<Vec<_>>().join(" ");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let here = maps.lines().any(|line| {
        let mut parts = line.split_whitespace();
        let (range, rights) = (parts.next().unwrap(), parts.next().unwrap());
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        if !rights.starts_with("rw") || memory.seek(SeekFrom::Start(start)).is_err() {
            return false;
        }
        let mut bytes = vec![];
        let _ = memory.by_ref().take(end - start).read_to_end(&mut bytes);
        contains(&bytes, text.as_bytes())
    });
    let mut children = children.split_whitespace().filter_map(|child| child.parse().ok());
    here || children.any(|child| memory_contains(child, text))
}
