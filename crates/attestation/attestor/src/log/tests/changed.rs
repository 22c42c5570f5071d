//! Tests of modified logs. A start cannot notice that the whole folder was replaced; a monitor
//! does: crates/attestation/attestor/src/monitor/tests.rs.

use super::*;

/// Description and modification of a log, and a part of the error of the next start.
type Case = (&'static str, fn(&Path), &'static str);

const COUNT: u16 = 260;

const CHANGES: &[Case] = &[
    (
        "the journal ends one line earlier",
        |log| lines(log, |lines| lines.truncate(259)),
        "has 259 attestations of 260",
    ),
    (
        "the journal ends at the end of a tile",
        |log| lines(log, |lines| lines.truncate(256)),
        "has 256 attestations of 260",
    ),
    ("the journal is empty", |log| lines(log, Vec::clear), "has 0 attestations of 260"),
    ("the journal ends within a line", |log| cut(log, 9), "has 259 attestations of 260"),
    (
        "the first line is missing",
        |log| lines(log, |lines| drop(lines.remove(0))),
        "wrong index or predecessor",
    ),
    (
        "two lines are swapped",
        |log| lines(log, |lines| lines.swap(7, 8)),
        "attestation 7 of the journal has the wrong index or predecessor",
    ),
    (
        "the last two lines are swapped",
        |log| lines(log, |lines| lines.swap(258, 259)),
        "wrong index or predecessor",
    ),
    (
        "a line is repeated",
        |log| lines(log, |lines| lines.push(lines[259].clone())),
        "wrong index or predecessor",
    ),
    ("a line is malformed", |log| lines(log, |lines| lines[3] = "no line".into()), "hexadecimal"),
    (
        "a digit of a body was changed",
        |log| lines(log, |lines| digit(&mut lines[3], 100)),
        "attestation 4 of the journal",
    ),
    (
        "a digit of the last body was changed",
        |log| lines(log, |lines| digit(&mut lines[259], 100)),
        "not match the journal's attestations",
    ),
    (
        "a digit of a signature was changed",
        |log| lines(log, |lines| digit(&mut lines[3], usize::MAX)),
        "signature",
    ),
    (
        "an entry was changed",
        |log| byte(log, "tile/entries/000", 5000),
        "tile/entries/000: the file was changed",
    ),
    (
        "a late entry was changed",
        |log| byte(log, "tile/entries/001.p/4", 9),
        "001.p/4: the file was changed",
    ),
    (
        "an entry of an earlier size was changed",
        |log| byte(log, "tile/entries/001.p/2", 9),
        "001.p/2: the file was changed",
    ),
    ("a tile was changed", |log| byte(log, "tile/0/000", 5000), "tile/0/000: the file was changed"),
    (
        "a late tile was changed",
        |log| byte(log, "tile/0/001.p/4", 0),
        "001.p/4: the file was changed",
    ),
    (
        "an upper tile was changed",
        |log| byte(log, "tile/1/000.p/1", 0),
        "tile/1/000.p/1: the file was changed",
    ),
    (
        "a tile is missing",
        |log| fs::remove_file(public(log, "tile/0/000")).unwrap(),
        "tile/0/000: the file is missing",
    ),
    (
        "late entries are missing",
        |log| fs::remove_file(public(log, "tile/entries/001.p/4")).unwrap(),
        "the file is missing",
    ),
    ("a tile is longer", |log| longer(log, "tile/0/000"), "the file was changed"),
    (
        "a tile has one more hash",
        |log| fs::write(public(log, "tile/0/001.p/5"), [0; 160]).unwrap(),
        "no checkpoint covers it",
    ),
    (
        "a tile has a width that is not a number",
        |log| fs::write(public(log, "tile/0/001.p/four"), [0]).unwrap(),
        "no checkpoint covers it",
    ),
    (
        "the checkpoint is missing",
        |log| fs::remove_file(public(log, "checkpoint")).unwrap(),
        "there is no checkpoint",
    ),
    ("the checkpoint was changed", |log| byte(log, "checkpoint", 24), "checkpoint"),
    ("its signature was changed", |log| byte(log, "checkpoint", 150), "checkpoint"),
    ("the checkpoint is of an earlier size", |log| older(log, 200, COUNT), "the file is missing"),
    (
        "the log ends one entry earlier",
        |log| {
            older(log, 259, COUNT);
            lines(log, |lines| lines.truncate(259));
        },
        "no checkpoint covers it",
    ),
    (
        "the checkpoint is of another log of this size",
        |log| fork(log),
        "not match the journal's attestations",
    ),
];

#[test]
fn a_modified_log_is_refused() {
    let folder = log_of(COUNT);
    for (what, change, why) in CHANGES {
        let copy = copied(folder.path());
        change(copy.path());
        match open(copy.path()) {
            Err(LogError::Corrupt(_, text)) => assert!(text.contains(why), "{what}: {text}"),
            Err(other) => panic!("{what}: {other}"),
            Ok(_) => panic!("{what}: was not detected"),
        }
    }
    open(folder.path()).unwrap();
}

/// A crash leaves the same state. The start publishes the same checkpoint again.
#[test]
fn a_checkpoint_one_entry_behind_is_republished() {
    let folder = log_of(7);
    let before = fs::read(public(folder.path(), "checkpoint")).unwrap();
    older(folder.path(), 6, 7);
    assert_ne!(fs::read(public(folder.path(), "checkpoint")).unwrap(), before);
    open(folder.path()).unwrap();
    assert_eq!(fs::read(public(folder.path(), "checkpoint")).unwrap(), before);
}

pub(crate) fn copied(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_into(folder, copy.path());
    copy
}

/// A revocation must not exempt older signatures from the check.
#[test]
fn signatures_of_a_revoked_key_are_verified_too() {
    let folder = log_of(5);
    let revoked = [Issuer { revoked_at: Some(1), ..issuers().remove(0) }];
    let opened = || TransparencyLog::open(folder.path(), ORIGIN, &revoked, None).map(drop);
    opened().unwrap();
    lines(folder.path(), |lines| digit(&mut lines[3], usize::MAX));
    let refused = opened().unwrap_err().to_string();
    assert!(refused.contains("signature"), "{refused}");
}

pub(crate) fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy_into(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

pub(crate) fn public(log: &Path, path: &str) -> PathBuf {
    log.join("public").join(path)
}

fn lines(log: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let path = log.join("private/journal");
    let mut lines: Vec<_> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    lines.push(String::new());
    fs::write(path, lines.join("\n")).unwrap();
}

/// Removes bytes from the journal's end.
fn cut(log: &Path, count: usize) {
    let path = log.join("private/journal");
    let bytes = fs::read(&path).unwrap();
    fs::write(path, &bytes[..bytes.len() - count]).unwrap();
}

fn digit(line: &mut String, at: usize) {
    let at = at.min(line.len() - 1);
    let other = if &line[at..=at] == "0" { "1" } else { "0" };
    line.replace_range(at..=at, other);
}

pub(crate) fn byte(log: &Path, path: &str, at: usize) {
    let path = public(log, path);
    let mut bytes = fs::read(&path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn longer(log: &Path, path: &str) {
    let path = public(log, path);
    let bytes = fs::read(&path).unwrap();
    fs::write(path, [bytes, vec![0]].concat()).unwrap();
}

/// Replaces the newest checkpoint with one of an earlier size, as it was then.
fn older(log: &Path, size: u64, count: u16) {
    let secret = fs::read_to_string(log.join("private/key")).unwrap();
    let secret = signed::unhex(secret.trim_end()).unwrap().try_into().unwrap();
    let mut edge = RightEdge::default();
    let text = fs::read_to_string(log.join("private/journal")).unwrap();
    for line in text.lines().take(usize::from(count)) {
        let (_, hash) = signed::decode_unverified(&signed::unhex(line).unwrap()).unwrap();
        if edge.size() < size {
            edge.push(leaf_hash(&tlog::entry(&hash))).unwrap();
        }
    }
    let checkpoint = Checkpoint { origin: ORIGIN.into(), size, root: edge.root() };
    let signed = SignedCheckpoint::sign(&checkpoint, &[&SigningKey::from_bytes(&secret), &key()]);
    fs::write(public(log, "checkpoint"), signed.unwrap().write()).unwrap();
}

/// Replaces the newest checkpoint with one of equally many other entries.
fn fork(log: &Path) {
    let secret = fs::read_to_string(log.join("private/key")).unwrap();
    let secret = signed::unhex(secret.trim_end()).unwrap().try_into().unwrap();
    let checkpoint = Checkpoint { origin: ORIGIN.into(), size: COUNT.into(), root: [9; 32] };
    let signed = SignedCheckpoint::sign(&checkpoint, &[&SigningKey::from_bytes(&secret)]);
    fs::write(public(log, "checkpoint"), signed.unwrap().write()).unwrap();
}
