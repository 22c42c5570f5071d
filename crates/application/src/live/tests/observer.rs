//! Observers: redacted frames for a few at a time.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    id::SessionId,
    session::{Event, PendingPrompt, Status},
    workflow::PromptKind,
};
use ports::{
    browser::PageState,
    driving::{ObserveError, ObserverConnection, ObserverEvent, ObserverService as _},
};
use testkit::sample::noon;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{Setup, within};
use crate::{fakes::NamingRedactor, live::Observers};

#[tokio::test(start_paused = true)]
async fn a_stream_token_opens_its_session_for_a_while() {
    let setup = Setup::new().await;
    let observers = observers(&setup);
    let (id, _viewer) = setup.live().await;
    for (id, token) in [
        (id, "guessed".to_owned()),
        (id, token(&setup, id, -1)),
        (id, token(&setup, SessionId::from_uuid(Uuid::nil()), 60)),
    ] {
        let refused = observers.watch(id, &token).await.err();
        assert!(matches!(refused, Some(ObserveError::NotFound)), "{token}");
    }
    let unknown = SessionId::from_uuid(Uuid::nil());
    let refused = observers.watch(unknown, &token(&setup, unknown, 60)).await.err();
    assert!(matches!(refused, Some(ObserveError::NotFound)));
    let observer = observers.watch(id, &token(&setup, id, 60)).await.unwrap();
    assert_eq!(event(&observer).await, Some(state(Status::Running, false)));
}

#[tokio::test(start_paused = true)]
async fn four_observers_watch_at_the_same_time() {
    let setup = Setup::new().await;
    let observers = observers(&setup);
    let (id, viewer) = setup.live().await;
    let mut watching = vec![];
    for _ in 0..4 {
        watching.push(observers.watch(id, &token(&setup, id, 60)).await.unwrap());
    }
    let refused = observers.watch(id, &token(&setup, id, 60)).await.err();
    assert!(matches!(refused, Some(ObserveError::Full)));
    drop(watching.pop());
    watching.push(observers.watch(id, &token(&setup, id, 60)).await.unwrap());
    setup.live_session(id).state.send_modify(|state| state.browser = None);
    drop(viewer);
    assert!(setup.world.engine.hub.find(id).is_some());
    watching.clear();
    assert!(setup.world.engine.hub.find(id).is_none(), "the last one is gone");
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_frames_late_and_redacted() {
    let setup = Setup::new().await;
    let (id, _viewer) = setup.live().await;
    let observer = observers(&setup).watch(id, &token(&setup, id, 600)).await.unwrap();
    event(&observer).await;
    let rect = [0.0, 0.0, 8.0, 8.0];
    let page = PageState { seq: 1, redaction_rects: vec![rect], ..PageState::default() };
    setup.browser.send_state(page);
    quiet(&observer, 3).await;
    let began = tokio::time::Instant::now();
    setup.browser.send_frame(1);
    let Some(ObserverEvent::Frame(frame)) = event(&observer).await else { panic!("no frame") };
    assert_eq!(frame.jpeg, b"image 1 without [[0.0, 0.0, 8.0, 8.0]]");
    assert!(began.elapsed().as_millis() >= 400);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_nothing_while_the_applicant_acts() {
    let setup = Setup::new().await;
    let (id, _viewer) = setup.live().await;
    let observer = observers(&setup).watch(id, &token(&setup, id, 600)).await.unwrap();
    event(&observer).await;
    quiet(&observer, 3).await;
    setup.browser.send_frame(1);
    assert!(matches!(event(&observer).await, Some(ObserverEvent::Frame(_))));
    let deadline = noon() + TimeDelta::minutes(5);
    let ask =
        PendingPrompt { kind: PromptKind::Otp, text_key: "code".into(), deadline, hint: None };
    setup.world.apply(id, [Event::InputNeeded { ask }]).await;
    assert_eq!(event(&observer).await, Some(state(Status::AwaitingUser, true)));
    setup.browser.send_frame(2);
    assert_eq!(event(&observer).await, Some(ObserverEvent::Covered));
    setup.browser.send_frame(3);
    quiet(&observer, 5).await;
    setup.world.apply(id, [Event::InputGiven]).await;
    assert_eq!(event(&observer).await, Some(state(Status::Running, false)));
    let Some(ObserverEvent::Frame(frame)) = event(&observer).await else { panic!("no frame") };
    assert_eq!(frame.seq, 3, "the page did not change meanwhile");
}

#[tokio::test(start_paused = true)]
async fn an_observer_takes_frames_when_it_can() {
    let setup = Setup::new().await;
    let (id, _viewer) = setup.live().await;
    let observer = observers(&setup).watch(id, &token(&setup, id, 600)).await.unwrap();
    event(&observer).await;
    quiet(&observer, 3).await;
    for seq in 1..=3 {
        setup.browser.send_frame(seq);
        let waits = tokio::time::timeout(std::time::Duration::from_secs(1), observer.next(false));
        assert!(waits.await.is_err());
    }
    let Some(ObserverEvent::Frame(frame)) = event(&observer).await else { panic!("no frame") };
    assert_eq!(frame.seq, 3, "the newest one");
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_the_end_that_another_process_brought_about() {
    let setup = Setup::new().await;
    let (id, _viewer) = setup.live().await;
    let observer = observers(&setup).watch(id, &token(&setup, id, 600)).await.unwrap();
    event(&observer).await;
    setup.live_session(id).state.send_modify(|state| state.browser = None);
    let other = crate::advance::SessionEngine {
        sessions: setup.world.store.clone(),
        leases: setup.world.store.clone(),
        clock: setup.world.clock.clone(),
        hub: Arc::default(),
        wakeups: crate::advance::Wakeups::default(),
        traces: setup.world.engine.traces.clone(),
    };
    other.advance(id, None, Event::TerminatedByPartner).await.unwrap();
    let Some(ObserverEvent::State { over: true, .. }) = event(&observer).await else {
        panic!("it goes on")
    };
    assert_eq!(event(&observer).await, None);
}

fn observers(setup: &Setup) -> Observers {
    Observers {
        instances: None,
        engine: setup.world.engine.clone(),
        tokens: setup.world.tokens.clone(),
        frames: Arc::new(NamingRedactor),
        runtime: Handle::current(),
    }
}

/// A token that is valid for so many seconds.
fn token(setup: &Setup, id: SessionId, seconds: i64) -> String {
    format!("{}/{id}", setup.world.engine.clock.now().timestamp() + seconds)
}

fn state(status: Status, withheld: bool) -> ObserverEvent {
    ObserverEvent::State { status, progress: 0, withheld, over: false }
}

/// The next event, without how far the session has come.
async fn event(observer: &Arc<dyn ObserverConnection>) -> Option<ObserverEvent> {
    within(60, observer.next(true)).await.map(|event| match event {
        ObserverEvent::State { status, withheld, over, .. } => {
            ObserverEvent::State { status, progress: 0, withheld, over }
        }
        other @ (ObserverEvent::Frame(_) | ObserverEvent::Covered) => other,
    })
}

/// Asserts that nothing is sent for so many seconds.
async fn quiet(observer: &Arc<dyn ObserverConnection>, seconds: u64) {
    let time = std::time::Duration::from_secs(seconds);
    let event = tokio::time::timeout(time, observer.next(true)).await;
    assert!(event.is_err(), "{event:?}");
}
