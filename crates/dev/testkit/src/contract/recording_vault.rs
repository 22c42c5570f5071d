//! The contract of [`ports::recording::RecordingVault`].

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use chrono::TimeDelta;
use domain::{
    id::{BrowserId, SessionId},
    recording::{RecordedContent, RecordedItem},
};
use ports::recording::RecordingVault;
use uuid::Uuid;

use crate::sample::noon;

/// A new, empty vault, a function that lists its objects, and a guard that must outlive the test.
pub struct Vault {
    pub vault: Arc<dyn RecordingVault>,
    /// Returns the name and content of every object.
    pub objects: Box<dyn Fn() -> Vec<(String, Vec<u8>)> + Send + Sync>,
    pub guard: Box<dyn std::any::Any + Send + Sync>,
}

pub async fn returns_the_segments_of_each_browser(vault: &Vault) {
    let (session, other) = (session(), session());
    let (first, second) = (browser(), browser());
    let vault = &vault.vault;
    vault.append(session, second, 0, &[frame(b"four"), end()]).await.unwrap();
    for (part, content) in [b"one".as_slice(), b"two", b"three"].into_iter().enumerate() {
        let part = u32::try_from(part).unwrap() + 9;
        vault.append(session, first, part, &[frame(content)]).await.unwrap();
    }
    vault.append(other, first, 0, &[frame(b"another's")]).await.unwrap();
    let segments = vault.segments(session).await.unwrap();
    assert_eq!(
        segments,
        [vec![frame(b"one"), frame(b"two"), frame(b"three")], vec![frame(b"four"), end()]]
    );
    vault.delete_part(session, first, 9).await.unwrap();
    vault.delete_part(session, first, 9).await.unwrap();
    assert_eq!(vault.segments(session).await.unwrap()[0].len(), 2);
    assert_eq!(vault.segments(self::session()).await.unwrap(), Vec::<Vec<RecordedItem>>::new());
}

pub async fn encrypts_the_segments_of_a_running_session(vault: &Vault) {
    let content = b"a frame of a page that must be encrypted";
    vault.vault.append(session(), browser(), 0, &[frame(content)]).await.unwrap();
    let objects = (vault.objects)();
    assert_eq!(objects.len(), 1);
    let plain = objects[0].1.windows(9).any(|part| content.windows(9).any(|own| own == part));
    assert!(!plain, "the plain text is stored");
}

pub async fn deletes_one_session_and_no_other(vault: &Vault) {
    let (session, other) = (session(), session());
    for session in [session, other] {
        vault.vault.append(session, browser(), 0, &[frame(b"one")]).await.unwrap();
        vault.vault.store_recording(session, b"mp4".to_vec()).await.unwrap();
    }
    let mut unfinished = vault.vault.unfinished(10).await.unwrap();
    unfinished.sort_unstable();
    let mut both = vec![session, other];
    both.sort_unstable();
    assert_eq!(unfinished, both);
    vault.vault.delete_segments(session).await.unwrap();
    assert_eq!(vault.vault.unfinished(10).await.unwrap(), [other]);
    assert_eq!((vault.objects)().len(), 3, "the recordings remain");
    for _ in 0..2 {
        vault.vault.delete_all(session).await.unwrap();
    }
    let remaining = (vault.objects)();
    assert_eq!(remaining.len(), 2, "{remaining:?}");
    assert!(remaining.iter().all(|(name, _)| name.contains(&other.to_string())));
    vault.vault.delete_all(other).await.unwrap();
    assert!((vault.objects)().is_empty());
}

pub async fn links_to_a_recording(vault: &Vault) {
    let session = session();
    vault.vault.store_recording(session, b"mp4".to_vec()).await.unwrap();
    let [one, other] = [TimeDelta::days(7), TimeDelta::days(6)];
    let link = vault.vault.link(session, one).await.unwrap();
    assert!(link.contains(&format!("{session}.mp4")), "{link}");
    assert_ne!(vault.vault.link(session, other).await.unwrap(), link);
}

fn frame(content: &[u8]) -> RecordedItem {
    RecordedItem { at: noon(), what: RecordedContent::Picture(content.to_vec()) }
}

fn end() -> RecordedItem {
    RecordedItem { at: noon(), what: RecordedContent::End }
}

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::new_v4())
}

/// Returns an identifier; identifiers are ordered by time, as those of browsers are.
fn browser() -> BrowserId {
    static LAST: AtomicU64 = AtomicU64::new(1);
    BrowserId::from_uuid(Uuid::from_u64_pair(LAST.fetch_add(1, Ordering::Relaxed), 0))
}
