//! Recordings: encoded, retried, failed, and deleted where nobody needs them.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    recording::{RecordedContent, RecordedItem},
    session::Event,
};
use ports::{
    clock::Clock as _,
    recording::{EncodeError, RecordingQueue as _, RecordingState},
};
use testkit::sample::noon;

use super::{run_for, seconds};
use crate::{
    testing::{FakeEncoder, FakeVault, World},
    workers::{Recordings, Worker as _},
};

#[tokio::test(start_paused = true)]
async fn the_recording_of_a_failed_session_is_encoded_and_its_segments_are_deleted() {
    let setup = Setup::new().await;
    let id = setup.failed(true).await;
    setup.run(10).await;
    assert_eq!(setup.state(id).await, RecordingState::Kept);
    assert_eq!(setup.recording(id).as_deref(), Some(b"1 frames".as_slice()));
    assert!(setup.vault.items(id).is_empty());
    assert_eq!(setup.worker().name(), "recordings");
}

#[tokio::test(start_paused = true)]
async fn an_encoding_is_tried_three_times() {
    let setup = Setup::new().await;
    let id = setup.failed(true).await;
    for _ in 0..2 {
        setup.encoder.failures.push(EncodeError::Failed("broken".into()));
    }
    setup.run(40).await;
    assert_eq!(setup.state(id).await, RecordingState::Kept);
    let id = setup.failed(true).await;
    for _ in 0..3 {
        setup.encoder.failures.push(EncodeError::Failed("broken".into()));
    }
    setup.run(40).await;
    let why = "The recording could not be encoded.";
    assert_eq!(setup.state(id).await, RecordingState::Failed(why.into()));
    assert!(setup.vault.items(id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_of_which_nothing_was_recorded_has_no_recording() {
    let setup = Setup::new().await;
    let id = setup.failed(false).await;
    setup.run(10).await;
    let why = "Nothing was recorded of this session.";
    assert_eq!(setup.state(id).await, RecordingState::Failed(why.into()));
}

#[tokio::test(start_paused = true)]
async fn a_vault_that_fails_is_tried_again() {
    let setup = Setup::new().await;
    let id = setup.failed(true).await;
    setup.vault.failures.push(());
    setup.run(30).await;
    assert_eq!(setup.state(id).await, RecordingState::Kept);
}

#[tokio::test(start_paused = true)]
async fn a_vault_that_is_gone_for_an_hour_loses_no_recording() {
    let setup = Setup::new().await;
    let id = setup.failed(true).await;
    for _ in 0..11 {
        setup.vault.failures.push(());
    }
    setup.run(3600).await;
    assert_eq!(setup.state(id).await, RecordingState::Pending);
    assert!(!setup.vault.items(id).is_empty());
    setup.run(660).await;
    assert_eq!(setup.state(id).await, RecordingState::Kept);
}

#[tokio::test(start_paused = true)]
async fn a_long_encoding_keeps_its_claim() {
    let setup = Setup::taking(300).await;
    let id = setup.failed(true).await;
    setup.run(200).await;
    assert_eq!(setup.state(id).await, RecordingState::InProgress);
    let other =
        setup.world.store.claim_recordings(setup.world.clock.now(), TimeDelta::minutes(1), 8);
    assert!(other.await.unwrap().is_empty(), "its lease was renewed");
}

#[tokio::test(start_paused = true)]
async fn what_is_recorded_of_an_erased_session_is_deleted() {
    let setup = Setup::taking(20).await;
    let id = setup.failed(true).await;
    let erase = async {
        tokio::time::sleep(seconds(10)).await;
        setup.world.engine.erase(id).await.unwrap();
    };
    tokio::join!(setup.run(60), erase);
    assert_eq!(setup.state(id).await, RecordingState::Erased);
    assert!(setup.recording(id).is_none() && setup.vault.items(id).is_empty());
}

#[tokio::test(start_paused = true)]
async fn segments_that_nobody_needs_are_cleaned_up() {
    let setup = Setup::new().await;
    let open = setup.world.session().await;
    let terminated = setup.world.session().await;
    setup.world.apply(terminated, [Event::TerminatedByPartner]).await;
    for id in [open, terminated] {
        setup.record(id);
    }
    setup.run(1).await;
    assert!(!setup.vault.items(open).is_empty() && setup.vault.items(terminated).is_empty());
    let later = setup.world.session().await;
    setup.world.apply(later, [Event::TerminatedByPartner]).await;
    setup.record(later);
    setup.run(1).await;
    assert!(setup.vault.items(later).is_empty(), "each process begins with a cleanup");
}

struct Setup {
    world: World,
    vault: Arc<FakeVault>,
    encoder: Arc<FakeEncoder>,
}

impl Setup {
    async fn new() -> Self {
        Self::taking(0).await
    }

    /// Each encoding takes so many seconds.
    async fn taking(time: u64) -> Self {
        let encoder = FakeEncoder { takes: seconds(time), ..FakeEncoder::default() };
        Self { world: World::new().await, vault: Arc::default(), encoder: Arc::new(encoder) }
    }

    fn record(&self, id: SessionId) {
        let frame = RecordedItem { at: noon(), what: RecordedContent::Picture(vec![1]) };
        let end = RecordedItem { at: noon() + TimeDelta::seconds(1), what: RecordedContent::End };
        self.vault.segments.lock().unwrap().insert(id, vec![(0, vec![frame, end])]);
    }

    /// A session that failed with a browser, and was recorded or not.
    async fn failed(&self, is_recorded: bool) -> SessionId {
        let id = self.world.session().await;
        self.world.run(id).await;
        if is_recorded {
            self.record(id);
        }
        let why = ErrorCode::UnexpectedPage;
        self.world.apply(id, [Event::Failed { why, node: None, retry_until: None }]).await;
        id
    }

    fn worker(&self) -> Recordings {
        Recordings {
            queue: self.world.store.clone(),
            vault: self.vault.clone(),
            encoder: self.encoder.clone(),
            sessions: self.world.store.clone(),
            clock: self.world.clock.clone(),
        }
    }

    async fn run(&self, time: u64) {
        run_for(&self.worker(), seconds(time)).await;
    }

    async fn state(&self, id: SessionId) -> RecordingState {
        self.world.store.recording(id).await.unwrap().unwrap()
    }

    fn recording(&self, id: SessionId) -> Option<Vec<u8>> {
        self.vault.recordings.lock().unwrap().get(&id).cloned()
    }
}
