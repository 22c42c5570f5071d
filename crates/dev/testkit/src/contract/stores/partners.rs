//! The contract of the partner's operations: polls, timelines, idempotent creation, erasure.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    id::{ApiKeyId, SessionId},
    session::{Event, ExtractedData, Outcome, Session, State, Status},
};
use ports::{
    delivery::ClaimRequest,
    session_store::{IdempotencyKey, InsertOutcome},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Backend, CLAIMERS, ROUNDS, commit, ended, hash, inserted, requested, team_fixture};
use crate::sample::{self, noon, opening};

pub async fn polls_a_session_with_the_key_that_owns_it(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (mine, theirs) = (hash(), hash());
    let key = sample::key(home.team);
    backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
    backend.keys.add_key(&sample::key(home.team), &theirs, "Backend", noon()).await.unwrap();
    let first = opening(key.id, home.platform);
    backend.sessions.insert(&first, None).await.unwrap();
    let id = first.session.id;

    let (caller, found) = backend.partner_sessions.poll(&mine, id).await.unwrap().unwrap();
    let (session, platform) = found.unwrap();
    assert_eq!((caller, &session), (key.clone(), &first.session));
    let platform = platform.unwrap();
    assert_eq!((platform.id, platform.display_name.as_str()), (home.platform, "Sample"));
    assert_eq!(platform.login_url, "https://sample.example/login");

    let (other, found) = backend.partner_sessions.poll(&theirs, id).await.unwrap().unwrap();
    assert_eq!((other.id == key.id, found), (false, None), "a session of another key");
    let unknown = SessionId::from_uuid(Uuid::new_v4());
    let (_, found) = backend.partner_sessions.poll(&mine, unknown).await.unwrap().unwrap();
    assert_eq!(found, None);
    assert_eq!(backend.partner_sessions.poll(&hash(), id).await.unwrap(), None, "an unknown key");
}

/// A store may answer concurrent polls in one batch; each caller still gets its own session.
pub async fn answers_concurrent_polls_each_with_its_own_session(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mut owned = Vec::new();
    for _ in 0..CLAIMERS {
        let (key, mine) = (sample::key(home.team), hash());
        backend.keys.add_key(&key, &mine, "Backend", noon()).await.unwrap();
        let first = opening(key.id, home.platform);
        backend.sessions.insert(&first, None).await.unwrap();
        owned.push((key.id, mine, first.session.id));
    }
    for round in 0..ROUNDS {
        let mut asking = JoinSet::new();
        for (number, (key, mine, _)) in owned.iter().enumerate() {
            let (key, mine, store) = (*key, mine.clone(), backend.partner_sessions.clone());
            // In odd rounds each key polls the session of the next one.
            let (_, _, id) = owned[(number + round % 2) % owned.len()];
            asking.spawn(async move {
                let (found, session) = store.poll(&mine, id).await.unwrap().unwrap();
                assert_eq!(found.id, key);
                assert_eq!(session.map(|(s, _)| s.id), (round % 2 == 0).then_some(id));
            });
            let (store, stranger) = (backend.partner_sessions.clone(), hash());
            asking.spawn(async move {
                assert_eq!(store.poll(&stranger, id).await.unwrap(), None);
            });
        }
        asking.join_all().await;
    }
}

/// With any number of concurrent lookups, an answer is never older than its request.
pub async fn rejects_a_rotated_key_during_concurrent_lookups(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (key, mut current) = (sample::key(home.team), hash());
    backend.keys.add_key(&key, &current, "Backend", noon()).await.unwrap();
    for _ in 0..ROUNDS {
        let mut asking = JoinSet::new();
        for _ in 0..CLAIMERS {
            let (store, mine) = (backend.key_verification.clone(), current.clone());
            asking.spawn(async move {
                for _ in 0..ROUNDS {
                    store.key_by_hash(&mine).await.unwrap();
                }
            });
        }
        let next = hash();
        tokio::task::yield_now().await;
        assert!(backend.keys.rotate_key(key.id, &next).await.unwrap());
        assert_eq!(backend.key_verification.key_by_hash(&current).await.unwrap(), None);
        let (found, _) = backend.key_verification.key_by_hash(&next).await.unwrap().unwrap();
        assert_eq!(found.id, key.id);
        let unknown = SessionId::from_uuid(Uuid::new_v4());
        assert_eq!(backend.partner_sessions.poll(&current, unknown).await.unwrap(), None);
        asking.join_all().await;
        current = next;
    }
}

pub async fn returns_the_timeline_of_a_session(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let (change, _) = requested(&session);
    commit(backend, &change).await;
    let node = Some("sign-in".to_owned());
    let failed =
        Event::Failed { why: ErrorCode::UnexpectedPage, node: node.clone(), retry_until: None };
    let change = sample::transition(&change.session, failed);
    commit(backend, &change).await;
    // A stale commit adds no entry.
    let stale = backend.sessions.commit(&ended(&session), noon()).await;
    stale.unwrap_err();

    let lines = backend.partner_sessions.timeline(home.owner, session.id).await.unwrap().unwrap();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| (line.event.as_str(), line.status, line.error_code.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            ("SessionCreated", Status::Created, None),
            ("BrowserRequested", Status::Initializing, None),
            ("Failed", Status::Error, Some("UNEXPECTED_PAGE")),
        ]
    );
    assert_eq!(lines.iter().map(|line| line.node.clone()).collect::<Vec<_>>(), [None, None, node]);
    let stranger = team_fixture(backend).await;
    assert_eq!(backend.partner_sessions.timeline(stranger.owner, session.id).await.unwrap(), None);
}

pub async fn creates_once_for_an_idempotency_key(backend: &Backend) {
    let home = team_fixture(backend).await;
    let (first, second) = (opening(home.owner, home.platform), opening(home.owner, home.platform));
    let insert = async |opening, idempotency: &IdempotencyKey| {
        backend.sessions.insert(opening, Some(idempotency)).await.unwrap()
    };
    let idempotency = key("k", 1, noon());
    assert_eq!(insert(&first, &idempotency).await, InsertOutcome::Fresh);
    let before = InsertOutcome::Before(Box::new(first.session.clone()));
    assert_eq!(insert(&second, &idempotency).await, before);
    assert_eq!(insert(&second, &key("k", 2, noon())).await, InsertOutcome::OtherRequest);
    assert_eq!(
        backend.sessions.find_unscoped(second.session.id).await.unwrap(),
        None,
        "nothing was saved"
    );

    let stranger = team_fixture(backend).await;
    let theirs = opening(stranger.owner, stranger.platform);
    assert_eq!(insert(&theirs, &idempotency).await, InsertOutcome::Fresh, "keys are per owner");
    let later = noon() + TimeDelta::microseconds(1);
    assert_eq!(
        insert(&second, &key("k", 2, later)).await,
        InsertOutcome::Fresh,
        "the earlier use has expired"
    );
    assert!(backend.sessions.find_unscoped(second.session.id).await.unwrap().is_some());
}

pub async fn creates_once_for_concurrent_requests(backend: &Backend) {
    let home = team_fixture(backend).await;
    for round in 0..ROUNDS {
        let idempotency = key(&format!("round {round}"), 1, noon());
        let tries = [(); CLAIMERS].map(|()| {
            let (sessions, idempotency) = (backend.sessions.clone(), idempotency.clone());
            let opening = opening(home.owner, home.platform);
            tokio::spawn(
                async move { sessions.insert(&opening, Some(&idempotency)).await.unwrap() },
            )
        });
        let mut fresh = 0;
        for attempt in tries {
            match attempt.await.unwrap() {
                InsertOutcome::Fresh => fresh += 1,
                InsertOutcome::Before(_) | InsertOutcome::InFlight => (),
                InsertOutcome::OtherRequest => panic!("it was the same request"),
            }
        }
        assert_eq!(fresh, 1);
    }
}

pub async fn deletes_old_idempotency_keys(backend: &Backend) {
    let home = team_fixture(backend).await;
    let first = opening(home.owner, home.platform);
    backend.sessions.insert(&first, Some(&key("k", 1, noon()))).await.unwrap();
    assert_eq!(backend.session_retention.delete_idempotency_keys(noon()).await.unwrap(), 0);
    let later = noon() + TimeDelta::microseconds(1);
    assert_eq!(backend.session_retention.delete_idempotency_keys(later).await.unwrap(), 1);
}

pub async fn erases_a_session_and_its_deliveries(backend: &Backend) {
    let home = team_fixture(backend).await;
    backend.webhooks.add_webhook(&sample::webhook(home.team), &[], noon()).await.unwrap();
    let session = completed(backend, home.owner, inserted(backend, &home).await).await;
    let later = noon() + TimeDelta::days(1);
    let due = async |before| backend.session_retention.find_unerased(before, 10).await.unwrap();
    assert_eq!(due(noon()).await, []);
    assert_eq!(due(later).await, [session.id]);

    let erased = session.erase(later).unwrap();
    backend.sessions.commit(&erased, later).await.unwrap();
    let found = backend.partner_sessions.find(home.owner, session.id).await.unwrap().unwrap();
    assert_eq!(found, erased.session);
    assert_eq!(due(later).await, [], "a session is erased once");
    let request = ClaimRequest { now: later, after: None, limit: 10, each: 10, capacities: vec![] };
    let pending = backend.deliveries.claim_deliveries(&request).await.unwrap().deliveries;
    assert_eq!(pending.len(), 1);
    assert!(!pending[0].body.contains("4711"), "{}", pending[0].body);
}

/// Saves a session as completed, with data.
async fn completed(backend: &Backend, owner: ApiKeyId, session: Session) -> Session {
    let mut change = ended(&session);
    let data = ExtractedData::from_iter([("accountId".to_owned(), "4711".into())]);
    let outcome = Outcome::Completed { data, attestation: None };
    change.session.state = State::Closed { outcome, ran: None, attempts: 1 };
    commit(backend, &change).await;
    backend.partner_sessions.find(owner, session.id).await.unwrap().unwrap()
}

fn key(text: &str, request: u8, since: DateTime<Utc>) -> IdempotencyKey {
    IdempotencyKey { key: text.to_owned(), request: [request; 32], since }
}
