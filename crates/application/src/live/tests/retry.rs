//! Another attempt after one that failed.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    session::{Event, Status},
};
use ports::driving::{ApplicantConnection, ClientCommand, ShownFailure};

use super::{Setup, joining, pass, view};

const WHY: ErrorCode = ErrorCode::MfaTimeout;

impl Setup {
    /// A session whose first attempt has failed, with its viewer.
    async fn failed(&self) -> (SessionId, Arc<dyn ApplicantConnection>) {
        let (id, viewer) = self.live().await;
        view(&viewer).await;
        self.fail(id).await;
        (id, viewer)
    }

    async fn fail(&self, id: SessionId) {
        let until = self.world.engine.clock.now() + TimeDelta::minutes(10);
        let failed = Event::Failed { why: WHY, node: None, retry_until: Some(until) };
        self.world.apply(id, [failed]).await;
    }
}

/// Polls a connection for so many seconds, as its client's connection does; returns the last status
/// that it sent.
async fn status_after(seconds: u64, viewer: &Arc<dyn ApplicantConnection>) -> Option<Status> {
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let mut status = None;
    while let Ok(Some(event)) = tokio::time::timeout_at(end, viewer.next(true)).await {
        if let ports::driving::ServerEvent::View(view) = event {
            status = Some(view.status);
        }
    }
    status
}

#[tokio::test(start_paused = true)]
async fn another_attempt_begins_with_another_browser() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.failed().await;
    let shown = view(&viewer).await;
    assert_eq!((shown.status, shown.outcome), (Status::AwaitingUser, None));
    let failure = ShownFailure { text: WHY.applicant_text(), code: WHY, attempts_left: 2 };
    assert_eq!(shown.failure, Some(failure));
    let before = setup.read(id).await;
    viewer.handle(ClientCommand::Retry).await;
    let after = setup.read(id).await;
    assert_eq!((after.status(), after.state.attempts()), (Status::Initializing, 2));
    assert_ne!(after.state.lease(), before.state.lease());
    // A second click comes too late.
    viewer.handle(ClientCommand::Retry).await;
    assert_eq!(setup.read(id).await.state, after.state);
    assert_eq!(view(&viewer).await.failure, None);
}

#[tokio::test(start_paused = true)]
async fn declining_ends_the_session_with_the_failure() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.failed().await;
    viewer.handle(ClientCommand::DeclineRetry).await;
    let session = setup.read(id).await;
    assert_eq!((session.status(), session.state.error_code()), (Status::Error, Some(WHY)));
    viewer.handle(ClientCommand::Retry).await;
    assert_eq!(setup.read(id).await.status(), Status::Error);
}

#[tokio::test(start_paused = true)]
async fn the_offer_lasts_a_minute_after_the_last_action() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.failed().await;
    assert_eq!(status_after(55, &viewer).await, Some(Status::AwaitingUser));
    viewer.handle(ClientCommand::Present).await;
    assert_eq!(status_after(55, &viewer).await, None, "it is open, and nothing has changed");
    assert_eq!(status_after(10, &viewer).await, Some(Status::Error));
    assert_eq!(setup.read(id).await.state.error_code(), Some(WHY));
}

#[tokio::test(start_paused = true)]
async fn the_offer_ends_after_ten_minutes() {
    let setup = Setup::new().await;
    let (_, viewer) = setup.failed().await;
    let mut seconds = 0;
    loop {
        viewer.handle(ClientCommand::Present).await;
        let status = status_after(10, &viewer).await;
        if status == Some(Status::Error) {
            break;
        }
        seconds += 10;
        assert!(seconds <= 600, "{status:?}");
    }
    assert!(seconds >= 590, "{seconds}");
}

/// Neither a viewer that was replaced nor a guest decides.
#[tokio::test(start_paused = true)]
async fn only_the_active_viewer_decides() {
    let setup = Setup::new().await;
    let (id, first) = setup.failed().await;
    let second = setup.join(id, 'a').await;
    let guest = setup.try_join(id, joining(id, 'b')).await.unwrap();
    for other in [&first, &guest] {
        for command in [ClientCommand::Retry, ClientCommand::DeclineRetry, ClientCommand::Present] {
            other.handle(command).await;
        }
    }
    assert!(setup.read(id).await.state.offered_retry().is_some());
    second.handle(ClientCommand::Retry).await;
    assert_eq!(setup.read(id).await.status(), Status::Initializing);
}

/// Commands about another attempt do nothing in a session that runs.
#[tokio::test(start_paused = true)]
async fn a_running_session_is_not_repeated() {
    let setup = Setup::new().await;
    let (id, viewer) = setup.live().await;
    view(&viewer).await;
    for command in [ClientCommand::Retry, ClientCommand::DeclineRetry, ClientCommand::Present] {
        viewer.handle(command).await;
    }
    pass(5).await;
    assert_eq!(setup.read(id).await.status(), Status::Running);
}
