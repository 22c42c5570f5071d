//! The contract of the partner's operations: polls, timelines, idempotent creation, erasure.

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    api_key::{ApiKey, Environment},
    binding::SecretHash,
    error_code::ErrorCode,
    id::{ApiKeyId, SessionId},
    request::{ListQuery, PageRequest},
    session::{Change, Event, ExtractedData, Outcome, Session, State, Status},
};
use ports::{
    delivery::ClaimRequest,
    device_store::Binding,
    outbox::ClaimOutcome,
    session_store::{IdempotencyKey, InsertOutcome},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    Backend, CLAIMERS, LEASE, ROUNDS, TeamFixture, commit, ended, hash, inserted, requested,
    team_fixture,
};
use crate::sample::{self, INSTANCE, noon, opening};

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
    let due = async |before| {
        let found = backend.session_retention.find_unerased(before, None, 10).await.unwrap();
        found.into_iter().map(|closed| closed.id).collect::<Vec<_>>()
    };
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

pub async fn finds_the_sessions_to_erase_behind_one(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..5 {
        completed(backend, home.owner, inserted(backend, &home).await).await;
    }
    let later = noon() + TimeDelta::days(1);
    let find = async |after, limit| {
        backend.session_retention.find_unerased(later, after, limit).await.unwrap()
    };
    let all = find(None, 10).await;
    assert_eq!(all.len(), 5);
    assert!(all.is_sorted(), "{all:?}");
    for (number, session) in all.iter().enumerate() {
        assert_eq!(find(Some(*session), 10).await, all[number + 1..]);
        assert_eq!(
            find(Some(*session), 1).await,
            all[number + 1..].iter().take(1).copied().collect::<Vec<_>>()
        );
    }
}

pub async fn counts_all_sessions_however_many_were_counted_before(backend: &Backend) {
    let home = team_fixture(backend).await;
    let production = ApiKey { environment: Environment::Production, ..sample::key(home.team) };
    backend.keys.add_key(&production, &hash(), "Backend", noon()).await.unwrap();
    for owner in [production.id, home.owner] {
        let home = TeamFixture { owner, ..home };
        let mut sessions = Vec::new();
        for hour in 0..30 {
            let opening = opening_at(&home, noon() + TimeDelta::hours(hour));
            backend.sessions.insert(&opening, None).await.unwrap();
            let session = match hour % 3 {
                0 => completed(backend, owner, opening.session).await,
                1 => {
                    let change = ended(&opening.session);
                    commit(backend, &change).await;
                    change.session
                }
                // Some stay open until later.
                _ => opening.session,
            };
            sessions.push(session);
        }
        let exact = async |sessions: &[Session], when: &str| {
            for status in Status::ALL.iter().copied().map(Some).chain([None]) {
                let expected = sessions
                    .iter()
                    .filter(|session| status.is_none_or(|status| session.status() == status));
                let query = ListQuery { status, page: PageRequest { limit: 1, offset: 2 } };
                let (_, total) = backend.partner_sessions.list(owner, query).await.unwrap();
                let expected = i64::try_from(expected.count()).unwrap();
                assert_eq!(total, expected, "{status:?} {when}");
            }
        };
        let count = async |day: i64, hour| {
            let now = noon() + TimeDelta::days(day);
            let before = noon() + TimeDelta::hours(hour);
            backend.session_retention.count_sessions(now, before, 10).await.unwrap();
        };
        exact(&sessions, "before anything is counted").await;
        count(2, 20).await;
        exact(&sessions, "with an open session among the first").await;
        for session in sessions.iter_mut().filter(|session| session.closed_at.is_none()) {
            let change = ended(session);
            commit(backend, &change).await;
            *session = change.session;
        }
        exact(&sessions, "with ends since").await;
        count(3, 20).await;
        exact(&sessions, "with twenty that were counted").await;
        count(4, 28).await;
        exact(&sessions, "with eight more").await;

        // The first five, and one that was not counted, are deleted.
        let later = noon() + TimeDelta::days(5);
        for session in sessions.iter().take(5).chain(sessions.last()) {
            backend.sessions.commit(&session.erase(later).unwrap(), later).await.unwrap();
        }
        for claim in backend.outbox.claim(INSTANCE, later, LEASE, 1000).await.unwrap() {
            assert!(backend.outbox.complete(&claim, ClaimOutcome::Done).await.unwrap());
        }
        backend.session_retention.delete_erased_sessions(later, 10).await.unwrap();
        sessions.pop();
        sessions.drain(..5);
        exact(&sessions, "after a deletion").await;
        count(6, 29).await;
        exact(&sessions, "with all that was counted").await;
        count(40, 29).await;
        exact(&sessions, "counted from the beginning").await;
    }
}

pub async fn deletes_erased_sessions_with_all_that_is_theirs(backend: &Backend) {
    let home = team_fixture(backend).await;
    let first = opening_at(&home, noon());
    backend.sessions.insert(&first, Some(&key("once", 1, noon()))).await.unwrap();
    let session = completed(backend, home.owner, first.session).await;
    let secret = SecretHash([7; 32]);
    assert!(backend.devices.bind(session.id, &secret, noon()).await.unwrap());
    let unerased = opening_at(&home, noon());
    backend.sessions.insert(&unerased, None).await.unwrap();
    let unerased = completed(backend, home.owner, unerased.session).await;
    let later = noon() + TimeDelta::days(1);
    let delete =
        async |before| backend.session_retention.delete_erased_sessions(before, 10).await.unwrap();
    assert_eq!(delete(later).await, 0, "neither was erased");

    let erased = session.erase(later).unwrap();
    backend.sessions.commit(&erased, later).await.unwrap();
    assert_eq!(delete(later).await, 0, "its jobs wait");
    for claim in backend.outbox.claim(INSTANCE, later, LEASE, 100).await.unwrap() {
        assert!(backend.outbox.complete(&claim, ClaimOutcome::Done).await.unwrap());
    }
    assert_eq!(delete(noon()).await, 0, "it is too young");
    backend.session_retention.delete_idempotency_keys(later).await.unwrap();
    assert_eq!(delete(later).await, 1);
    assert_eq!(delete(later).await, 0);
    assert_eq!(backend.sessions.find_unscoped(session.id).await.unwrap(), None);
    assert_eq!(backend.partner_sessions.timeline(home.owner, session.id).await.unwrap(), None);
    let query = ListQuery { status: None, page: PageRequest { limit: 10, offset: 0 } };
    let (listed, total) = backend.partner_sessions.list(home.owner, query).await.unwrap();
    assert_eq!((listed.len(), total), (1, 1));
    assert_eq!(listed[0].id, unerased.id);
    assert_eq!(backend.devices.device(session.id, &secret).await.unwrap(), Binding::Unbound);
}

/// Returns the creation of a session whose identifier has the moment, as those of the service have.
fn opening_at(home: &TeamFixture, at: DateTime<Utc>) -> Change {
    let mut opening = opening(home.owner, home.platform);
    let time = u64::try_from(at.timestamp_millis()).unwrap();
    let random = Uuid::new_v4().into_bytes();
    let id = uuid::Builder::from_unix_timestamp_millis(time, random.last_chunk().unwrap());
    opening.session.id = SessionId::from_uuid(id.into_uuid());
    opening.session.created_at = at;
    opening
}

/// Saves a session as completed, with data.
async fn completed(backend: &Backend, owner: ApiKeyId, session: Session) -> Session {
    let mut change = ended(&session);
    let data = ExtractedData::from_iter([("accountId".to_owned(), "4711".into())]);
    let outcome = Outcome::Completed { data, attestation: None };
    change.session.state = State::Closed { outcome, ran: None, region: None, attempts: 1 };
    commit(backend, &change).await;
    backend.partner_sessions.find(owner, session.id).await.unwrap().unwrap()
}

fn key(text: &str, request: u8, since: DateTime<Utc>) -> IdempotencyKey {
    IdempotencyKey { key: text.to_owned(), request: [request; 32], since }
}
