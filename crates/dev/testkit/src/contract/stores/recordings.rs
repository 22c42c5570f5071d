//! The contract of [`ports::recording::RecordingQueue`].

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    session::{Event, Session},
};
use ports::recording::{RecordingClaim, RecordingOutcome, RecordingState};

use super::{
    Backend, CLAIMERS, LEASE, ROUNDS, TeamFixture, commit, ended, inserted, requested, team_fixture,
};
use crate::sample::{noon, transition};

pub async fn enqueues_the_recording_of_an_error_once_a_browser_ran(backend: &Backend) {
    let home = team_fixture(backend).await;
    let failed = failed(backend, &home).await;
    assert_eq!(state(backend, &failed).await, Some(RecordingState::Pending));

    let never_ran = inserted(backend, &home).await;
    let change = transition(
        &never_ran,
        Event::Failed { why: ErrorCode::BrowserUnavailable, node: None, retry_until: None },
    );
    commit(backend, &change).await;
    assert_eq!(state(backend, &never_ran).await, None, "no browser has run");

    let running = running(backend, &home).await;
    assert_eq!(state(backend, &running).await, None, "the session is open");
    commit(backend, &ended(&running)).await;
    assert_eq!(state(backend, &running).await, None, "the outcome is not an error");

    assert_eq!(claim(backend, noon()).await, [], "its last items may still arrive");
    let claims = claim(backend, soon()).await;
    assert_eq!(claims, [RecordingClaim { session: failed.id, attempt: 1 }]);
    assert_eq!(state(backend, &failed).await, Some(RecordingState::InProgress));
}

pub async fn leases_a_recording_to_one_claimer(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        failed(backend, &home).await;
        failed(backend, &home).await;
        let claims = [(); CLAIMERS].map(|()| {
            let queue = backend.recordings.clone();
            tokio::spawn(async move { queue.claim_recordings(soon(), LEASE, 2).await.unwrap() })
        });
        let mut sessions = vec![];
        for claim in claims {
            sessions.extend(claim.await.unwrap().into_iter().map(|claim| claim.session));
        }
        let claimed = sessions.len();
        sessions.sort_unstable();
        sessions.dedup();
        assert_eq!(sessions.len(), claimed, "a recording was leased twice");
        assert_eq!(claimed + claim(backend, soon()).await.len(), 2, "a recording was lost");
    }
}

pub async fn keeps_a_renewed_claim_and_leases_an_expired_one_again(backend: &Backend) {
    let session = failed(backend, &team_fixture(backend).await).await;
    let first = claim(backend, soon()).await.remove(0);
    let later = soon() + LEASE;
    assert!(backend.recordings.renew_recording(&first, later + LEASE).await.unwrap());
    assert_eq!(claim(backend, later).await, [], "the claim was renewed");

    let second = claim(backend, later + LEASE).await.remove(0);
    assert_eq!((second.session, second.attempt), (session.id, 2));
    assert!(!backend.recordings.renew_recording(&first, later + LEASE * 9).await.unwrap());
    assert!(!settle(backend, &first, RecordingOutcome::Kept).await, "the claim was lost");
    assert!(settle(backend, &second, RecordingOutcome::Kept).await);
    assert_eq!(state(backend, &session).await, Some(RecordingState::Kept));
    assert_eq!(claim(backend, later + LEASE * 99).await, [], "the recording is complete");
    assert!(!backend.recordings.renew_recording(&second, later + LEASE * 99).await.unwrap());
}

pub async fn retries_a_recording_when_due_and_keeps_the_reason_of_a_failure(backend: &Backend) {
    let session = failed(backend, &team_fixture(backend).await).await;
    let first = claim(backend, soon()).await.remove(0);
    let due = soon() + TimeDelta::seconds(10);
    assert!(settle(backend, &first, RecordingOutcome::RetryAt(due)).await);
    assert_eq!(state(backend, &session).await, Some(RecordingState::Pending));
    assert_eq!(claim(backend, due - TimeDelta::microseconds(1)).await, []);
    let second = claim(backend, due).await.remove(0);
    assert!(settle(backend, &second, RecordingOutcome::Failed("encoder failed".into())).await);
    let failed = Some(RecordingState::Failed("encoder failed".into()));
    assert_eq!(state(backend, &session).await, failed);
    assert_eq!(claim(backend, due + LEASE * 99).await, []);
}

pub async fn encodes_no_recording_of_an_erased_session(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (before, during) = (failed(backend, &home).await, failed(backend, &home).await);
    commit(backend, &before.erase(noon()).unwrap()).await;
    let claims = claim(backend, soon()).await;
    assert_eq!(claims.len(), 1, "{claims:?}");
    assert_eq!(claims[0].session, during.id);
    commit(backend, &during.erase(noon()).unwrap()).await;
    assert!(!settle(backend, &claims[0], RecordingOutcome::Kept).await, "the recording was erased");
    for session in [before, during] {
        assert_eq!(state(backend, &session).await, Some(RecordingState::Erased));
    }
    assert_eq!(claim(backend, soon() + LEASE * 99).await, []);
}

/// The time at which the recordings of sessions that ended at noon are due.
fn soon() -> DateTime<Utc> {
    noon() + TimeDelta::seconds(5)
}

async fn running(backend: &Backend, home: &TeamFixture) -> Session {
    let (requested, _) = requested(&inserted(backend, home).await);
    commit(backend, &requested).await;
    let started = transition(&requested.session, Event::BrowserStarted);
    commit(backend, &started).await;
    started.session
}

async fn failed(backend: &Backend, home: &TeamFixture) -> Session {
    let session = running(backend, home).await;
    let failed = transition(
        &session,
        Event::Failed { why: ErrorCode::UnexpectedPage, node: None, retry_until: None },
    );
    commit(backend, &failed).await;
    failed.session
}

async fn state(backend: &Backend, session: &Session) -> Option<RecordingState> {
    backend.recordings.recording(session.id).await.unwrap()
}

async fn claim(backend: &Backend, now: DateTime<Utc>) -> Vec<RecordingClaim> {
    backend.recordings.claim_recordings(now, LEASE, 10).await.unwrap()
}

async fn settle(backend: &Backend, claim: &RecordingClaim, outcome: RecordingOutcome) -> bool {
    backend.recordings.complete_recording(claim, outcome).await.unwrap()
}
