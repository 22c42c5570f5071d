//! Where recordings are kept, against the contract: a folder, and a bucket of a server that checks
//! signatures; and links to films against both.
#![expect(clippy::unwrap_used, reason = "tests panic to fail")]

use std::{
    fs,
    future::{Ready, ready},
    path::Path,
    sync::Arc,
    time::Duration,
};

use adapters::{
    recordings::{LocalLinks, ObjectVault, Storage},
    seal::Seal,
    system::SystemClock,
};
use chrono::TimeDelta;
use domain::id::SessionId;
use ports::{clock::Clock, recording::RecordingVault as _};
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
    let (storage, path) = (Storage::Folder(folder.path().to_owned()), folder.path().to_owned());
    let vault = Arc::new(open(&storage, links(folder.path(), Arc::new(SystemClock))));
    ready(Vault { vault, look: Box::new(move || files(&path)), guard: Box::new(folder) })
}

fn bucket() -> Ready<Vault> {
    let server = S3Server::start();
    let path = server.bucket();
    let links = links(&path, Arc::new(SystemClock));
    let vault = Arc::new(open(&storage(&server), links));
    ready(Vault { vault, look: Box::new(move || files(&path)), guard: Box::new(server) })
}

fn storage(server: &S3Server) -> Storage {
    let variables = server.variables().map(|(name, value)| (name.to_owned(), value));
    Storage::Bucket { url: server.url(), variables: variables.to_vec() }
}

fn open(storage: &Storage, links: LocalLinks) -> ObjectVault {
    ObjectVault::open(storage, Seal::new(&[7; 32]), links).unwrap()
}

fn links(folder: &Path, clock: Arc<dyn Clock>) -> LocalLinks {
    LocalLinks::new(folder.to_owned(), "https://avouch.example".into(), &[8; 32], clock)
}

/// Every file below a folder, but for a server's own notes.
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
async fn a_folders_link_opens_one_film_until_it_has_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::at(testkit::sample::noon()));
    let links = links(folder.path(), clock.clone());
    let vault = open(&Storage::Folder(folder.path().to_owned()), links.clone());
    let (one, other) = (session(), session());
    for session in [one, other] {
        vault.put_film(session, b"film".to_vec()).await.unwrap();
    }
    let link = vault.link(one, TimeDelta::days(7)).await.unwrap();
    let link = url::Url::parse(&link).unwrap();
    let name = link.path_segments().unwrap().next_back().unwrap().to_owned();
    let query = |name| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let (expires, signature) = (query("expires").parse::<i64>().unwrap(), query("signature"));
    let opened = links.open(&name, expires, &signature).unwrap();
    assert_eq!(fs::read(opened).unwrap(), b"film");

    assert_eq!(links.open(&format!("{other}.mp4"), expires, &signature), None);
    assert_eq!(links.open(&name, expires + 1, &signature), None);
    assert_eq!(links.open(&name, expires, &signature[1..]), None);
    assert_eq!(links.open(&name, expires, ""), None);
    for name in ["..", "../secret.key", "", ".mp4", "x.mp4"] {
        assert_eq!(links.open(name, expires, &signature), None, "{name}");
    }
    clock.forward(TimeDelta::days(7) - TimeDelta::seconds(1));
    assert!(links.open(&name, expires, &signature).is_some());
    clock.forward(TimeDelta::seconds(1));
    assert_eq!(links.open(&name, expires, &signature), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buckets_link_opens_one_film_until_it_has_run_out() {
    let server = S3Server::start();
    let vault = open(&storage(&server), links(&server.bucket(), Arc::new(SystemClock)));
    let (one, other) = (session(), session());
    for session in [one, other] {
        vault.put_film(session, b"film".to_vec()).await.unwrap();
    }
    let client = reqwest::Client::new();
    let get = async |url: &str| {
        let answer = client.get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.bytes().await.unwrap())
    };
    let link = vault.link(one, TimeDelta::days(7)).await.unwrap();
    assert_eq!(get(&link).await, (200, "film".into()));
    let part = client.get(&link).header("range", "bytes=1-2").send().await.unwrap();
    assert_eq!((part.status().as_u16(), part.text().await.unwrap()), (206, "il".to_owned()));

    let elsewhere = link.replace(&one.to_string(), &other.to_string());
    let longer = link.replace("X-Amz-Expires=604800", "X-Amz-Expires=604799");
    let (unsigned, _) = link.split_once('?').unwrap();
    assert_ne!(longer, link);
    for tampered in [elsewhere.as_str(), &longer, unsigned] {
        let (status, _) = get(tampered).await;
        assert_eq!(status, 403, "{tampered}");
    }
    let short = vault.link(one, TimeDelta::seconds(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let (status, _) = get(&short).await;
    assert!((400..500).contains(&status), "it has run out: {status}");
}
