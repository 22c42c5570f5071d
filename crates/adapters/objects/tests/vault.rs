//! The contract of the recording vault: a folder, and a bucket of a server that verifies
//! signatures; and links to recordings in both.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    future::{Ready, ready},
    path::Path,
    sync::Arc,
};

use chrono::TimeDelta;
use domain::id::SessionId;
use objects::{LinkSigner, ObjectStorage, ObjectVault, RecordingFiles};
use ports::{
    StoreError,
    clock::Clock,
    recording::{RecordingVault as _, SharedRecordings as _},
};
use system::clock::SystemClock;
use system::encryption::XChaChaCipher;
use testkit::{clock::FakeClock, contract::recording_vault::Vault, s3::S3Server};
use uuid::Uuid;

mod folder {
    testkit::recording_vault_contract!(super::folder());
}

mod bucket {
    testkit::recording_vault_contract!(super::bucket());
}

fn folder() -> Ready<Vault> {
    let folder = tempfile::tempdir().unwrap();
    let (storage, path) =
        (ObjectStorage::Folder(folder.path().to_owned()), folder.path().to_owned());
    let vault = Arc::new(open(&storage, links(Arc::new(SystemClock))));
    ready(Vault { vault, objects: Box::new(move || files(&path)), guard: Box::new(folder) })
}

fn bucket() -> Ready<Vault> {
    let server = S3Server::start();
    let path = server.bucket();
    let vault = Arc::new(open(&storage(&server), links(Arc::new(SystemClock))));
    ready(Vault { vault, objects: Box::new(move || files(&path)), guard: Box::new(server) })
}

fn storage(server: &S3Server) -> ObjectStorage {
    let variables = server.variables().map(|(name, value)| (name.to_owned(), value));
    ObjectStorage::Bucket { url: server.url(), variables: variables.to_vec() }
}

fn open(storage: &ObjectStorage, links: LinkSigner) -> ObjectVault {
    ObjectVault::open(storage, Arc::new(XChaChaCipher::new(&[7; 32])), links).unwrap()
}

fn links(clock: Arc<dyn Clock>) -> LinkSigner {
    LinkSigner::new("https://avouch.example".into(), &[8; 32], clock)
}

/// Returns all files below a folder, except for a server's own metadata.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else if !entry.file_name().to_string_lossy().starts_with('.') {
            found.push((entry.path().display().to_string(), fs::read(entry.path()).unwrap()));
        }
    }
    found
}

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::new_v4())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_one_film_until_it_has_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::at(testkit::sample::noon()));
    let links = links(clock.clone());
    let vault = open(&ObjectStorage::Folder(folder.path().to_owned()), links.clone());
    let (one, other) = (session(), session());
    let link = vault.link(one, TimeDelta::days(7)).await.unwrap();
    assert_ne!(link, vault.link(one, TimeDelta::days(7)).await.unwrap(), "each link is a new one");
    let link = url::Url::parse(&link).unwrap();
    let name = link.path_segments().unwrap().next_back().unwrap().to_owned();
    let query = |name| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let (expires, signature) = (query("expires").parse::<i64>().unwrap(), query("signature"));
    assert_eq!(links.verify(&name, expires, &signature), Some(one));

    assert_eq!(links.verify(&format!("{other}.mp4"), expires, &signature), None);
    assert_eq!(links.verify(&name, expires + 1, &signature), None);
    assert_eq!(links.verify(&name, expires, &signature[1..]), None);
    assert_eq!(links.verify(&name, expires, ""), None);
    for name in ["..", "../secret.key", "", ".mp4", "x.mp4"] {
        assert_eq!(links.verify(name, expires, &signature), None, "{name}");
    }
    clock.forward(TimeDelta::days(7) - TimeDelta::seconds(1));
    assert!(links.verify(&name, expires, &signature).is_some());
    clock.forward(TimeDelta::seconds(1));
    assert_eq!(links.verify(&name, expires, &signature), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn films_of_a_folder_are_encrypted_and_read_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let storage = ObjectStorage::Folder(folder.path().to_owned());
    films_are_encrypted_and_read_in_parts(&storage, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn films_of_a_bucket_are_encrypted_and_read_in_parts() {
    let server = S3Server::start();
    films_are_encrypted_and_read_in_parts(&storage(&server), &server.bucket()).await;
}

async fn films_are_encrypted_and_read_in_parts(storage: &ObjectStorage, path: &Path) {
    const CHUNK: usize = 64 * 1024;
    let links = links(Arc::new(SystemClock));
    let vault = Arc::new(open(storage, links.clone()));
    let films = RecordingFiles { vault: vault.clone(), links };
    for length in [1, CHUNK, 2 * CHUNK + 7, 40 * CHUNK - 1] {
        let session = session();
        let mp4: Vec<u8> = (0..length).map(|at| u8::try_from(at * 7 % 251).unwrap()).collect();
        vault.store_recording(session, mp4.clone()).await.unwrap();
        for range in [0..length, 0..1, length / 2..length, length - 1..length] {
            assert_eq!(part(&films, session, range.clone()).await.unwrap(), mp4[range]);
        }
        let (_, object) = files(path).remove(0);
        let plain = length > 64 && object.windows(64).any(|seen| *seen == mp4[..64]);
        assert!(!plain, "it can be read");
        vault.delete_all(session).await.unwrap();
    }
    let (one, other) = (session(), session());
    vault.store_recording(one, vec![7; 3 * CHUNK]).await.unwrap();
    let (name, mut object) = files(path).remove(0);
    let moved = name.replace(&one.to_string(), &other.to_string());
    fs::copy(&name, &moved).unwrap();
    assert!(part(&films, other, 0..1).await.is_err(), "the film of another session");
    let size = object.len();
    object[size - CHUNK] ^= 1;
    fs::write(&name, &object).unwrap();
    assert!(part(&films, one, 0..1).await.is_ok());
    assert!(part(&films, one, 2 * CHUNK..2 * CHUNK + 1).await.is_err(), "it was changed");
    fs::write(&name, &object[..size - CHUNK - 41]).unwrap();
    assert!(part(&films, one, 0..1).await.is_err(), "it was cut off");
    fs::write(&name, b"a film from before").unwrap();
    assert_eq!(part(&films, one, 2..6).await.unwrap(), b"film");
}

/// Reads some bytes of a recording through a link to it.
async fn part(
    films: &RecordingFiles,
    session: SessionId,
    range: std::ops::Range<usize>,
) -> Result<Vec<u8>, StoreError> {
    let link = films.vault.link(session, TimeDelta::days(7)).await?;
    let link = url::Url::parse(&link).unwrap();
    let query = |name| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let (name, expires) = (format!("{session}.mp4"), query("expires").parse().unwrap());
    let film = films.open(&name, expires, &query("signature")).await?.unwrap();
    let (mut bytes, end) = (vec![], u64::try_from(range.end).unwrap());
    while bytes.len() < range.len() {
        let start = u64::try_from(range.start + bytes.len()).unwrap();
        bytes.extend(film.read(start..end).await?);
    }
    Ok(bytes)
}
