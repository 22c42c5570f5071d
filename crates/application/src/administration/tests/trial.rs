//! One session of a definition, tried out by its author.

use std::sync::Mutex;

use domain::{
    id::PlatformId,
    session::{Outcome, Session, State, Status},
};
use ports::driving::{CreatedSession, MockSessionService, SessionError, SessionView};
use ports::key_store::KeyStore as _;
use testkit::sample;

use super::*;
use crate::administration::{TrialError, TrialProgress, TrialSession};

#[tokio::test]
async fn a_caller_of_its_own_is_created() {
    let fixture = Fixture::new().await;
    let environment = domain::api_key::Environment::Production;
    let sources = (&*fixture.clock, &*fixture.random);
    let caller = TrialSession::create_caller(
        (&*fixture.store, &*fixture.store),
        (sources.0, sources.1),
        environment,
    )
    .await;
    let caller = caller.unwrap();
    assert_eq!(fixture.store.key(caller.id).await.unwrap().as_ref(), Some(&caller));
    assert_eq!((caller.environment, caller.expires_at), (environment, None));
}

#[tokio::test(start_paused = true)]
async fn each_change_is_reported_until_the_session_ends() {
    let created = view(State::START);
    let closed =
        view(State::Closed { outcome: Outcome::Terminated, ran: None, region: None, attempts: 1 });
    let mut sessions = MockSessionService::new();
    let answer = CreatedSession { view: created.clone(), replayed: false };
    sessions.expect_create().times(1).returning(move |_, _, _| Ok(answer.clone()));
    sessions.expect_read().times(2).returning(move |_, _| Ok(created.clone()));
    sessions.expect_read().times(1).returning(move |_, _| Ok(closed.clone()));
    let reports = Mutex::new(vec![]);
    let report = |progress| reports.lock().unwrap().push(progress);
    let result = trial(sessions).run(&report).await.unwrap();
    assert_eq!(result.payload["status"], "TERMINATED");
    assert!(!result.has_data());
    let expected = [
        TrialProgress::Created { embed_url: "https://avouch.test/embed".into() },
        TrialProgress::Changed { at: noon(), status: Status::Terminated },
    ];
    assert!(*reports.lock().unwrap() == expected);
}

#[tokio::test]
async fn a_session_that_cannot_be_read_ends_the_trial() {
    let answer = CreatedSession { view: view(State::START), replayed: false };
    let mut sessions = MockSessionService::new();
    sessions.expect_create().returning(move |_, _, _| Ok(answer.clone()));
    sessions.expect_read().returning(|_, _| Err(SessionError::NotFound));
    let failed = trial(sessions).run(&|_| ()).await;
    assert!(matches!(failed, Err(TrialError::Read(SessionError::NotFound))));
}

fn trial(sessions: MockSessionService) -> TrialSession {
    TrialSession {
        sessions: Arc::new(sessions),
        clock: Arc::new(FakeClock::at(noon())),
        caller: sample::key(TEAM),
        platform: PlatformId(1),
    }
}

/// Returns a session in this state.
fn view(state: State) -> SessionView {
    let owner = sample::key(TEAM).id;
    let opened = sample::opening(owner, PlatformId(1)).session;
    let closed_at = matches!(state, State::Closed { .. }).then(noon);
    SessionView {
        session: Session { state, closed_at, ..opened },
        embed_url: "https://avouch.test/embed".into(),
        stream_url: None,
    }
}
