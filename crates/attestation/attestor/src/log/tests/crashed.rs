//! Tests of logs whose process or machine stopped at an arbitrary moment.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use attestation::tlog::{RightEdge, verify_consistency};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use sha2::Sha256;

use super::{
    changed::{copied, copy_into, public},
    *,
};

/// Returns the files that one more attestation changes, in the order in which they are written.
fn written_files(count: u16) -> Vec<String> {
    let (tile, width) = ((count - 1) / 256, (count - 1) % 256 + 1);
    let suffix = if width == 256 { String::new() } else { format!(".p/{width}") };
    let above = (width == 256).then(|| format!("public/tile/1/000.p/{}", count / 256));
    ["private/journal".into()]
        .into_iter()
        .chain([format!("public/tile/entries/{tile:03}{suffix}")])
        .chain([format!("public/tile/0/{tile:03}{suffix}")])
        .chain(above)
        .chain(["public/checkpoint".into()])
        .collect()
}

/// Crashes before each file of an append, and within the journal's line.
#[test]
fn the_next_start_completes_what_a_crash_interrupted() {
    for count in [1, 2, 256, 257] {
        let before = log_of(count - 1);
        let after = copied(before.path());
        let mut log = open(after.path()).unwrap();
        log.sign(body(count - 1), NOON, &key()).unwrap();
        drop(log);
        let checkpoint = fs::read(public(after.path(), "checkpoint")).unwrap();
        let files = written_files(count);
        for done in 0..=files.len() {
            let crashed = copied(before.path());
            for file in &files[..done] {
                let to = crashed.path().join(file);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(after.path().join(file), to).unwrap();
            }
            // A file that was not renamed yet.
            fs::create_dir_all(public(crashed.path(), "tile/0")).unwrap();
            fs::write(public(crashed.path(), ".checkpoint.new"), "half").unwrap();
            let mut log = open(crashed.path())
                .unwrap_or_else(|error| panic!("{count}, after {done} files: {error}"));
            // The journal's entry is published exactly as without the crash, and the next one
            // follows.
            let size = log.edge.size();
            assert_eq!(size, u64::from(count) - u64::from(done == 0), "{count}, {done}");
            if done > 0 {
                assert_eq!(fs::read(public(crashed.path(), "checkpoint")).unwrap(), checkpoint);
            }
            log.sign(body(1000), NOON, &key()).unwrap();
            drop(log);
            open(crashed.path()).unwrap();
        }
    }
    let before = log_of(3);
    let after = copied(before.path());
    open(after.path()).unwrap().sign(body(9), NOON, &key()).unwrap();
    let short = fs::read(before.path().join("private/journal")).unwrap();
    let whole = fs::read(after.path().join("private/journal")).unwrap();
    for length in (short.len()..whole.len()).step_by(97) {
        let crashed = copied(before.path());
        fs::write(crashed.path().join("private/journal"), &whole[..length]).unwrap();
        let mut log = open(crashed.path()).unwrap();
        assert_eq!(log.edge.size(), 3, "no checkpoint covered an incomplete line");
        log.sign(body(9), NOON, &key()).unwrap();
    }
}

#[test]
fn a_failed_write_stops_signing_until_a_restart() {
    let folder = log_of(2);
    let mut log = open(folder.path()).unwrap();
    // A file is in the place of the next partial tile's folder.
    fs::remove_dir_all(public(folder.path(), "tile/0")).unwrap();
    fs::write(public(folder.path(), "tile/0"), "").unwrap();
    assert!(matches!(log.sign(body(5), NOON, &key()), Err(SignError::File)));
    assert!(matches!(log.sign(body(6), NOON, &key()), Err(SignError::File)));
    drop(log);
    fs::remove_file(public(folder.path(), "tile/0")).unwrap();
    copy_into(&public(log_of(2).path(), "tile/0"), &{
        let tiles = public(folder.path(), "tile/0");
        fs::create_dir_all(&tiles).unwrap();
        tiles
    });
    let log = open(folder.path()).unwrap();
    assert!(log.contains(&body(5).session) && !log.contains(&body(6).session));
}

const ROUNDS: &str = "LOG_ROUND_FOLDER";

/// Signs in a separate process until it is killed, and prints every released attestation.
#[test]
#[ignore = "runs in a separate process, started by the test below"]
fn signs_until_it_is_killed() {
    let folder = PathBuf::from(std::env::var(ROUNDS).unwrap());
    let mut log = open(&folder).unwrap();
    for session in u16::try_from(log.edge.size()).unwrap().. {
        let logged = log.sign(body(session), NOON, &key()).unwrap();
        println!("released {} {}", hex(&logged.attestation), hex(&logged.inclusion));
    }
}

/// Kills the process in rounds. Every released attestation must be in the log that remains, and
/// every published checkpoint must be consistent with it.
#[test]
fn attestations_released_before_a_kill_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let known = log_key(folder.path(), ORIGIN).unwrap();
    let mut released = vec![];
    for round in 0..25_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "log::tests::crashed::signs_until_it_is_killed"])
            .args(["--ignored", "--nocapture"])
            .env(ROUNDS, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reading = std::thread::spawn(move || {
            // The test harness prints its own text before the first line.
            let line = |line: String| {
                let (_, told) = line.split_once("released ")?;
                let (attestation, inclusion) = told.split_once(' ')?;
                Some((signed::unhex(attestation)?, signed::unhex(inclusion)?))
            };
            lines.map_while(Result::ok).filter_map(line).collect::<Vec<_>>()
        });
        std::thread::sleep(Duration::from_millis(60 + 17 * (round % 11)));
        child.kill().unwrap();
        child.wait().unwrap();
        released.extend(reading.join().unwrap());
        // Nothing is repaired by hand between the rounds.
        if round % 5 == 4 {
            drop(open(folder.path()).unwrap());
        }
    }
    assert!(released.len() > 25, "{} were released", released.len());
    let log = open(folder.path()).unwrap();
    let (size, root) = (log.edge.size(), log.edge.root());
    drop(log);
    let mut whole = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    let mut edge = RightEdge::default();
    let mut roots = vec![edge.root()];
    let journal = fs::read_to_string(folder.path().join("private/journal")).unwrap();
    for line in journal.lines() {
        let (_, hash) = signed::decode_unverified(&signed::unhex(line).unwrap()).unwrap();
        whole.push(tlog::entry(&hash));
        edge.push(leaf_hash(&tlog::entry(&hash))).unwrap();
        roots.push(edge.root());
    }
    assert_eq!((whole.len(), roots.last()), (size, Some(&root)));
    for (attestation, inclusion) in &released {
        let proof = LogProof::read(inclusion).unwrap();
        let attestation = signed::verify(attestation, &issuers()).unwrap();
        let seen = proof.verify_attestation(&attestation, &known).unwrap();
        let more = usize::try_from(size - seen.size).unwrap();
        let path = whole.prove_consistency(more);
        let path = path.as_bytes().as_chunks().0;
        verify_consistency((seen.size, &seen.root), (size, &root), path).unwrap();
        assert_eq!(roots[usize::try_from(seen.size).unwrap()], seen.root);
    }
    println!("{} released, {size} in the log", released.len());
}
