//! What is recorded of a browser.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    id::{BrowserId, SessionId},
    recording::{RecordedContent, RecordedItem},
    session::Event,
};
use ports::{
    browser::PageState,
    recording::{RecordingOutcome, RecordingQueue as _},
};
use tokio::{sync::mpsc, task::JoinHandle};

use super::pass;
use crate::{
    fakes::NamingRedactor,
    live::Recorder,
    testing::{FakeBrowser, FakeVault, World},
};

#[tokio::test(start_paused = true)]
async fn frames_and_nodes_are_stored_in_segments() {
    let recording = Recording::begin().await;
    recording.nodes.send("signIn".into()).await.unwrap();
    // Frames are hidden until the state of the page is known for a while.
    pass(3).await;
    recording.browser.send_frame(1);
    pass(3).await;
    recording.browser.send_frame(2);
    pass(3).await;
    let (vault, id) = recording.end(true).await;
    let contents: Vec<_> = vault.items(id).into_iter().map(content).collect();
    assert_eq!(
        contents,
        ["node signIn", "image 1 with Nothing covered", "image 2 with Nothing covered", "end"]
    );
    assert_eq!(vault.numbers(id), [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn one_covered_frame_stands_for_all_that_follow() {
    let recording = Recording::begin().await;
    for seq in 1..=3 {
        // Nothing is known about what was typed before.
        recording.browser.send_frame(seq);
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    let (vault, id) = recording.end(true).await;
    let contents: Vec<_> = vault.items(id).into_iter().map(content).collect();
    assert_eq!(contents[0], "image 1 with Everything covered");
    assert_eq!(contents.last().unwrap(), "end");
    assert!(contents.len() <= 3, "{contents:?}");
}

#[tokio::test(start_paused = true)]
async fn the_same_image_is_stored_once() {
    let recording = Recording::begin().await;
    pass(3).await;
    for seq in 1..=3 {
        recording.browser.send_image(seq, b"an image".to_vec());
        pass(1).await;
    }
    recording.browser.send_state(PageState { seq: 1, ..PageState::default() });
    recording.browser.end();
    pass(3).await;
    let (vault, id) = recording.end(true).await;
    let contents: Vec<_> = vault.items(id).into_iter().map(content).collect();
    assert_eq!(contents, ["an image with Nothing covered", "end"]);
}

#[tokio::test(start_paused = true)]
async fn segments_wait_while_the_storage_is_not_available() {
    let recording = Recording::begin().await;
    for _ in 0..20 {
        recording.vault.failures.push(());
    }
    recording.nodes.send("first".into()).await.unwrap();
    pass(3).await;
    recording.nodes.send("second".into()).await.unwrap();
    pass(3).await;
    // The storage is back after the end.
    let (vault, id) = recording.end(true).await;
    let contents: Vec<_> = vault.items(id).into_iter().map(content).collect();
    assert_eq!(contents, ["node first", "node second", "end"]);
    assert_eq!(vault.numbers(id), [0]);
}

#[tokio::test(start_paused = true)]
async fn frames_that_wait_for_the_storage_are_bounded() {
    let recording = Recording::begin().await;
    pass(3).await;
    for _ in 0..60 {
        recording.vault.failures.push(());
    }
    for seq in 1..=8 {
        recording.browser.send_image(seq, vec![u8::try_from(seq).unwrap(); 1 << 19]);
        pass(3).await;
    }
    let (vault, id) = recording.end(true).await;
    let pictures = vault.items(id).into_iter().filter_map(|item| match item.what {
        RecordedContent::Picture(jpeg) => Some(jpeg[0]),
        RecordedContent::Node(_) | RecordedContent::End => None,
    });
    assert_eq!(pictures.collect::<Vec<_>>().last(), Some(&8), "the last ones are kept");
    let bytes = vault.items(id).iter().map(|item| content(item.clone()).len()).sum::<usize>();
    assert!(bytes < 3 << 20, "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn of_a_long_recording_the_last_part_is_kept() {
    let recording = Recording::begin().await;
    pass(3).await;
    for seq in 1..=70 {
        recording.browser.send_image(seq, vec![u8::try_from(seq).unwrap(); (1 << 20) + 1]);
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
    pass(1).await;
    let (vault, id) = recording.end(true).await;
    let numbers = vault.numbers(id);
    assert!(numbers.len() <= 65, "{}", numbers.len());
    assert_eq!(numbers, (numbers[0]..=numbers[numbers.len() - 1]).collect::<Vec<_>>());
    assert!(numbers[0] > 0, "the first ones are deleted");
}

#[tokio::test(start_paused = true)]
async fn the_recording_of_a_session_that_needs_none_is_deleted() {
    let recording = Recording::begin().await;
    recording.nodes.send("signIn".into()).await.unwrap();
    pass(3).await;
    let (vault, id) = recording.end(false).await;
    assert!(vault.items(id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_segment_that_is_stored_after_the_encoding_is_deleted() {
    let recording = Recording::begin().await;
    recording.nodes.send("signIn".into()).await.unwrap();
    pass(3).await;
    recording.close(true).await;
    let store = &recording.world.store;
    let later = recording.world.engine.clock.now() + TimeDelta::minutes(1);
    let claims = store.claim_recordings(later, TimeDelta::minutes(1), 1).await.unwrap();
    assert!(store.complete_recording(&claims[0], RecordingOutcome::Kept).await.unwrap());
    let (vault, id) = recording.finish().await;
    assert!(vault.items(id).is_empty());
}

/// A browser that is recorded.
struct Recording {
    world: World,
    id: SessionId,
    browser: Arc<FakeBrowser>,
    vault: Arc<FakeVault>,
    nodes: mpsc::Sender<String>,
    task: JoinHandle<()>,
}

impl Recording {
    async fn begin() -> Self {
        let world = World::new().await;
        let id = world.session().await;
        world.run(id).await;
        let live = world.engine.hub.find_or_create(id);
        live.publish(&world.read(id).await);
        let (browser, vault) = (Arc::<FakeBrowser>::default(), Arc::<FakeVault>::default());
        let (nodes, entered) = mpsc::channel(8);
        let recorder = Recorder {
            sessions: world.store.clone(),
            clock: world.clock.clone(),
            frames: Arc::new(NamingRedactor),
            vault: vault.clone(),
            recordings: world.store.clone(),
            session: id,
            browser: BrowserId::from_u128(1),
        };
        let task = tokio::spawn(recorder.record(live, browser.clone(), entered));
        Self { world, id, browser, vault, nodes, task }
    }

    /// Ends the session, with an error or otherwise, and then the run.
    async fn end(self, with_error: bool) -> (Arc<FakeVault>, SessionId) {
        self.close(with_error).await;
        self.finish().await
    }

    async fn close(&self, with_error: bool) {
        let event = if with_error {
            Event::Failed { why: ErrorCode::UnexpectedPage, node: None, retry_until: None }
        } else {
            Event::TerminatedByPartner
        };
        self.world.apply(self.id, [event]).await;
    }

    async fn finish(self) -> (Arc<FakeVault>, SessionId) {
        drop(self.nodes);
        self.task.await.unwrap();
        (self.vault, self.id)
    }
}

fn content(item: RecordedItem) -> String {
    match item.what {
        RecordedContent::Picture(jpeg) => String::from_utf8(jpeg).unwrap(),
        RecordedContent::Node(node) => format!("node {node}"),
        RecordedContent::End => "end".into(),
    }
}
