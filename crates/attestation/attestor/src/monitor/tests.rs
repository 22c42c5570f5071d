//! Tests of logs that grow correctly, and of logs that their operator replaced: each replacement is
//! consistent by itself and passes the attestor's own checks at its start.

use std::{fs, path::Path};

use attestation::tlog::{entry, write_bundle};
use ed25519_dalek::SigningKey;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::{
    log::tests::{ORIGIN, changed::copied, grow},
    log_key,
};

/// A log that a monitor has checked at `COUNT` entries, and the monitor's state.
struct MonitoredLog {
    log: TempDir,
    state: TempDir,
}

const COUNT: u16 = 260;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// Replaces the served files by those of a log with these attestations, which is consistent by
/// itself.
fn publish(log: &Path, attestations: impl IntoIterator<Item = u16>) {
    let mut edge = RightEdge::default();
    let mut bundles = vec![vec![]];
    let mut files = vec![];
    for attestation in attestations {
        let [high, low] = attestation.to_be_bytes();
        let mut hash = [high; 32];
        hash[31] = low;
        let entry = entry(&hash);
        let full = edge.push(leaf_hash(&entry)).unwrap();
        bundles.last_mut().unwrap().push(entry);
        if !full.is_empty() {
            bundles.push(vec![]);
        }
        files.extend(full.into_iter().map(|tile| (tile.path(), tile.bytes())));
    }
    files.extend(edge.partial_tiles().iter().map(|tile| (tile.path(), tile.bytes())));
    for (index, entries) in (0..).zip(bundles).filter(|(_, entries)| !entries.is_empty()) {
        let path = entries_path(index, u16::try_from(entries.len()).unwrap());
        files.push((path, write_bundle(entries.iter().map(Vec::as_slice)).unwrap()));
    }
    let _ = fs::remove_dir_all(log.join("tile"));
    for (path, bytes) in files {
        let path = log.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    sign(log, edge.size(), edge.root());
}

fn sign(log: &Path, size: u64, root: Hash) {
    let checkpoint = Checkpoint { origin: ORIGIN.into(), size, root };
    let signed = SignedCheckpoint::sign(&checkpoint, &[&key()]).unwrap();
    fs::write(log.join("checkpoint"), signed.write()).unwrap();
}

impl MonitoredLog {
    async fn new() -> Self {
        let watched =
            Self { log: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        watched.replace(0..COUNT);
        let seen = watched.look(false).await.unwrap();
        assert_eq!((seen.new_entries, seen.checkpoint.size), (260, 260));
        watched
    }

    fn copy(&self) -> Self {
        Self { log: copied(self.log.path()), state: copied(self.state.path()) }
    }

    fn monitor_of(&self, log: &str) -> Monitor {
        let key = NoteKey::new(ORIGIN, key().verifying_key().as_bytes()).unwrap().to_string();
        Monitor::new(log, &key, self.state.path().join("state.json")).unwrap()
    }

    async fn look(&self, all: bool) -> Result<VerifiedLog, MonitorError> {
        self.monitor_of(self.log.path().to_str().unwrap()).check(all).await
    }

    fn replace(&self, attestations: impl IntoIterator<Item = u16>) {
        publish(self.log.path(), attestations);
    }

    fn file(&self, path: &str) -> PathBuf {
        self.log.path().join(path)
    }
}

/// Checks the log as the attestor itself writes it.
#[tokio::test]
async fn the_attestors_log_is_consistent_at_each_size() {
    let (log, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = log_key(log.path(), ORIGIN).unwrap().to_string();
    let folder = log.path().join("public");
    let state = state.path().join("made/state.json");
    let monitor = Monitor::new(folder.to_str().unwrap(), &key, state).unwrap();
    let mut before = 0;
    for count in [0, 1, 2, 255, 256, 257] {
        grow(log.path(), before..count);
        let seen = monitor.check(count == 256).await.unwrap();
        assert_eq!(
            (seen.new_entries, seen.checkpoint.size),
            ((count - before).into(), count.into())
        );
        before = count;
    }
}

#[tokio::test]
async fn an_append_only_log_is_consistent() {
    let watched = MonitoredLog::new().await;
    assert_eq!(watched.look(false).await.unwrap().new_entries, 0);
    let mut before = COUNT;
    for count in [261, 511, 512, 513, 770, 3000] {
        watched.replace(0..count);
        let seen = watched.look(count == 513).await.unwrap();
        assert_eq!(
            (seen.new_entries, seen.checkpoint.size),
            ((count - before).into(), count.into())
        );
        before = count;
    }
    let fresh = MonitoredLog { log: watched.log, state: tempfile::tempdir().unwrap() };
    assert_eq!(fresh.look(true).await.unwrap().new_entries, 3000);
    let seen = fresh.look(true).await.unwrap();
    assert_eq!(seen.json()["newEntries"], 0);
}

#[tokio::test]
async fn a_log_that_grows_during_a_check_is_consistent() {
    let watched = MonitoredLog::new().await;
    let checkpoint = fs::read(watched.file("checkpoint")).unwrap();
    watched.replace(0..600);
    fs::write(watched.file("checkpoint"), checkpoint).unwrap();
    // The partial tile at the top stays until that tile is full.
    fs::write(
        watched.file("tile/1/000.p/1"),
        &fs::read(watched.file("tile/1/000.p/2")).unwrap()[..32],
    )
    .unwrap();
    assert!(!watched.file("tile/0/001.p").exists(), "only the full tile exists");
    assert_eq!(watched.look(true).await.unwrap().checkpoint.size, 260);
}

/// A modification of the operator, whether a check of all entries detects it or one of the new
/// ones, and the exit code.
type Case = (&'static str, fn(&MonitoredLog), bool, u8);

const CHANGES: &[Case] = &[
    ("truncated at a tile's end", |log| log.replace(0..256), false, 11),
    ("truncated by an entry", |log| log.replace(0..259), false, 11),
    ("truncated completely", |log| log.replace(0..0), false, 11),
    ("truncated and grown again", |log| log.replace((0..200).chain(300..370)), false, 10),
    ("another log of the same size", |log| log.replace((0..100).chain(300..460)), false, 10),
    ("another last entry", |log| log.replace((0..259).chain([300])), false, 10),
    ("another first entry, and more", |log| log.replace((300..301).chain(1..280)), false, 10),
    ("another log, all entries checked", |log| log.replace((0..100).chain(300..470)), true, 10),
    ("another last entry, all entries checked", |log| log.replace((0..259).chain([300])), true, 10),
    ("a signed root of other entries", |log| sign(log.log.path(), 260, [5; 32]), false, 10),
    ("a signed root of more entries", |log| sign(log.log.path(), 261, [5; 32]), false, 13),
    ("two entries swapped", |log| log.replace((0..7).chain([8, 7]).chain(9..260)), false, 10),
    ("an early entry changed", |log| byte(log, "tile/entries/000", 500), true, 10),
    ("a length changed", |log| byte(log, "tile/entries/000", 1), true, 10),
    ("an early hash changed", |log| byte(log, "tile/0/000", 500), true, 10),
    ("a late entry changed", |log| byte(log, "tile/entries/001.p/4", 50), false, 10),
    ("a late hash changed", |log| byte(log, "tile/0/001.p/4", 50), false, 10),
    ("an upper hash changed", |log| byte(log, "tile/1/000.p/1", 5), false, 10),
    ("a signed size changed", |log| byte(log, "checkpoint", 24), false, 12),
    ("a signature changed", |log| byte(log, "checkpoint", 120), false, 12),
    ("no checkpoint", |log| fs::write(log.file("checkpoint"), "").unwrap(), false, 12),
    ("a tile missing", |log| remove(log, "tile/0/000"), true, 13),
    ("late entries missing", |log| remove(log, "tile/entries/001.p/4"), false, 13),
    ("the checkpoint missing", |log| remove(log, "checkpoint"), false, 13),
    ("everything too long", |log| long(log), false, 10),
    ("the state of another log", |log| state(log, "log.test", "log.best"), false, 14),
    ("the state cut off", |log| state(log, "}", ""), false, 14),
    (
        "the state's hashes changed",
        |log| state(log, "\"edge\": [\n    \"", "\"edge\": [\n    \"0"),
        false,
        14,
    ),
];

fn remove(watched: &MonitoredLog, path: &str) {
    fs::remove_file(watched.file(path)).unwrap();
}

fn byte(watched: &MonitoredLog, path: &str, at: usize) {
    let mut bytes = fs::read(watched.file(path)).unwrap();
    bytes[at] ^= 1;
    fs::write(watched.file(path), bytes).unwrap();
}

fn long(watched: &MonitoredLog) {
    fs::write(watched.file("checkpoint"), vec![b'x'; 100_000]).unwrap();
}

fn state(watched: &MonitoredLog, from: &str, to: &str) {
    let path = watched.state.path().join("state.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[tokio::test]
async fn a_modified_log_is_detected() {
    let watched = MonitoredLog::new().await;
    for (what, change, all, code) in CHANGES {
        let copy = watched.copy();
        change(&copy);
        let before = fs::read(copy.state.path().join("state.json")).unwrap();
        let finding = copy.look(*all).await.expect_err(what);
        assert_eq!(finding.exit_code(), *code, "{what}: {finding}");
        let after = fs::read(copy.state.path().join("state.json")).unwrap();
        assert_eq!(before, after, "{what}: the saved state stays");
        let signed = fs::read(copy.state.path().join("state.json.refused"));
        assert_eq!(signed.is_ok(), [10, 11].contains(code) && !what.contains("too long"), "{what}");
    }
}

#[tokio::test]
async fn a_log_of_another_key_is_refused() {
    let watched = MonitoredLog::new().await;
    let other = tempfile::tempdir().unwrap();
    let key = log_key(other.path(), ORIGIN).unwrap().to_string();
    let folder = watched.log.path();
    let state = other.path().join("state.json");
    let monitor = Monitor::new(folder.to_str().unwrap(), &key, state).unwrap();
    assert!(matches!(monitor.check(false).await, Err(MonitorError::Signature(_))));
    let bad = |log: &str, key: &str| Monitor::new(log, key, "state".into()).map(drop);
    assert!(matches!(bad("http://log.test", &key), Err(MonitorError::State(_))), "not over TLS");
    assert!(matches!(bad("folder", "no key"), Err(MonitorError::State(_))));
}

/// Serves a folder over HTTP: the file or 404. With `instead` it answers every request with that
/// status.
async fn serve(folder: &Path, instead: Option<&'static str>) -> String {
    let (folder, listener) = (folder.to_owned(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = format!("http://{}/log", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![];
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(stream.read_u8().await.unwrap());
            }
            let asked = String::from_utf8(asked).unwrap();
            let path = asked.strip_prefix("GET /log/").unwrap().split(' ').next().unwrap();
            let (status, body) = match (instead, fs::read(folder.join(path))) {
                (Some(instead), _) => (instead, vec![]),
                (None, Ok(body)) => ("200 OK", body),
                (None, Err(_)) => ("404 Not Found", vec![]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_log_is_read_from_a_web_server() {
    let watched = MonitoredLog::new().await;
    let folder = watched.log.path();
    let address = serve(folder, None).await;
    assert_eq!(watched.monitor_of(&address).check(true).await.unwrap().new_entries, 0);
    watched.replace(0..520);
    assert_eq!(watched.monitor_of(&address).check(false).await.unwrap().new_entries, 260);
    watched.replace(0..100);
    let finding = watched.monitor_of(&address).check(false).await.unwrap_err();
    assert_eq!(finding, MonitorError::RolledBack { previous: 520, current: 100 });
    for status in ["302 Found\r\nlocation: /other", "500 Oh", "404 Not Found"] {
        let address = serve(folder, Some(status)).await;
        let finding = watched.monitor_of(&address).check(false).await.unwrap_err();
        assert!(matches!(finding, MonitorError::Unreachable(_)), "{status}: {finding}");
    }
    let unreachable = watched.monitor_of("http://127.0.0.1:1").check(false).await;
    assert!(matches!(unreachable, Err(MonitorError::Unreachable(_))));
}
