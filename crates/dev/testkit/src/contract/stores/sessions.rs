//! The contract of [`ports::session_store::SessionStore`].

use std::time::Duration;

use chrono::TimeDelta;
use domain::{
    api_key::{ApiKey, Environment},
    error_code::ErrorCode,
    id::{ApiKeyId, SessionId, TeamId, WebhookId},
    request::{ListQuery, PageRequest},
    session::{DefinitionVersion, Event, Job, Session, Status},
};
use ports::{
    delivery_log::{DeliveryFilter, DeliveryScope},
    recording::RecordingState,
    session_store::{ActivityPeriod, CommitError, DueReason, SessionFilter, SessionSummary},
};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    ALIVE, Backend, CLAIMERS, LEASE, ROUNDS, commit, ended, hash, inserted, requested, team_fixture,
};
use crate::sample::{self, INSTANCE, key, lease, noon, opening, webhook};

pub async fn finds_an_inserted_session(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    assert_eq!(found(backend, &session).await, session);
    assert_eq!(backend.sessions.find_unscoped(session.id).await.unwrap(), Some(session));
}

pub async fn hides_a_session_from_other_owners(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let stranger = ApiKeyId::from_uuid(Uuid::new_v4());
    assert_eq!(backend.partner_sessions.find(stranger, session.id).await.unwrap(), None);
    let (items, total) = backend.partner_sessions.list(stranger, everything()).await.unwrap();
    assert_eq!((items.len(), total), (0, 0));
}

pub async fn refuses_a_second_insert(backend: &Backend) {
    let home = team_fixture(backend).await;
    let opening = opening(home.owner, home.platform);
    backend.sessions.insert(&opening, None).await.unwrap();
    backend.sessions.insert(&opening, None).await.unwrap_err();
}

/// A store may insert concurrent sessions in one batch; a duplicate does not fail the other ones.
pub async fn inserts_concurrent_sessions_except_a_duplicate(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let there = opening(home.owner, home.platform);
        backend.sessions.insert(&there, None).await.unwrap();
        let fresh: Vec<_> = (0..CLAIMERS).map(|_| opening(home.owner, home.platform)).collect();
        let mut inserting = JoinSet::new();
        for change in fresh.iter().chain([&there]).cloned() {
            let (store, id) = (backend.sessions.clone(), change.session.id);
            inserting.spawn(async move { (id, store.insert(&change, None).await.is_ok()) });
        }
        for (id, inserted) in inserting.join_all().await {
            assert_eq!(inserted, id != there.session.id);
        }
        for change in &fresh {
            let id = change.session.id;
            let found = backend.partner_sessions.find(home.owner, id).await.unwrap();
            assert_eq!(found.as_ref(), Some(&change.session));
            let lines = backend.partner_sessions.timeline(home.owner, id).await.unwrap().unwrap();
            assert_eq!((lines.len(), lines[0].event.as_str()), (1, "SessionCreated"));
        }
    }
}

pub async fn commits_state_and_effects_together(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let (change, lease) = requested(&session);
    commit(backend, &change).await;
    assert_eq!(found(backend, &session).await, change.session);
    let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
    let jobs: Vec<_> = claims.into_iter().map(|claim| claim.job).collect();
    assert_eq!(jobs, [Job::StartBrowser { lease }]);
}

pub async fn refuses_a_stale_commit_entirely(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let ((first, _), (late, _)) = (requested(&session), requested(&session));
    commit(backend, &first).await;

    let refusal = backend.sessions.commit(&late, noon() + ALIVE).await.unwrap_err();
    assert!(matches!(refusal, CommitError::Stale), "{refusal:?}");
    assert_eq!(found(backend, &session).await, first.session);
    let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
    assert_eq!(claims.len(), 1, "the stale change left a job behind: {claims:?}");
}

pub async fn lets_one_of_two_concurrent_commits_succeed(backend: &Backend) {
    let home = team_fixture(backend).await;
    for _ in 0..ROUNDS {
        let session = inserted(backend, &home).await;
        let ((here, _), there) = (requested(&session), ended(&session));
        let until = noon() + ALIVE;
        let (a, b) = tokio::join!(
            backend.sessions.commit(&here, until),
            backend.sessions.commit(&there, until)
        );
        match (a, b) {
            (Ok(()), Err(CommitError::Stale)) | (Err(CommitError::Stale), Ok(())) => (),
            other => panic!("one commit should have won: {other:?}"),
        }
    }
}

/// Exactly one of many changes of the same version is saved, with its records alone.
pub async fn lets_one_of_many_concurrent_commits_succeed(backend: &Backend) {
    let home = team_fixture(backend).await;
    backend.webhooks.add_webhook(&webhook(home.team), &[], noon()).await.unwrap();
    for _ in 0..ROUNDS {
        let session = inserted(backend, &home).await;
        let others = inserted(backend, &home).await;
        let mut committing = JoinSet::new();
        for number in 0..CLAIMERS {
            let change = if number % 2 == 0 { ended(&session) } else { requested(&session).0 };
            let store = backend.sessions.clone();
            committing.spawn(async move {
                let result = store.commit(&change, noon() + ALIVE).await;
                (change, result)
            });
        }
        // A change of another session is not part of the race.
        commit(backend, &ended(&others)).await;
        let mut saved = Vec::new();
        for (change, result) in committing.join_all().await {
            match result {
                Ok(()) => saved.push(change),
                Err(CommitError::Stale) => (),
                Err(CommitError::Store(error)) => panic!("{error:?}"),
            }
        }
        let [winner] = saved.as_slice() else { panic!("one commit should have won: {saved:?}") };
        assert_eq!(found(backend, &session).await, winner.session);
        let lines = timeline(backend, &session).await;
        assert_eq!(lines, ["SessionCreated", winner.event]);
        let told = usize::from(winner.session.state.is_closed());
        assert_eq!(deliveries_of(backend, &session).await.len(), told);
        let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
        assert_eq!(claims.len(), 1 - told, "the jobs of the others: {claims:?}");
    }
}

/// A store may save concurrent changes in one batch; one that is stale does not fail the other ones,
/// and each has its own records.
pub async fn commits_concurrent_changes_except_a_stale_one(backend: &Backend) {
    let home = team_fixture(backend).await;
    let hook = webhook(home.team);
    backend.webhooks.add_webhook(&hook, &[], noon()).await.unwrap();
    for _ in 0..ROUNDS {
        let stale = inserted(backend, &home).await;
        commit(backend, &requested(&stale).0).await;
        assert_eq!(backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap().len(), 1);
        let mut changes = vec![ended(&stale)];
        for number in 0..CLAIMERS {
            let session = inserted(backend, &home).await;
            changes.push(if number % 2 == 0 { ended(&session) } else { requested(&session).0 });
        }
        let mut committing = JoinSet::new();
        for change in changes.iter().cloned() {
            let store = backend.sessions.clone();
            committing.spawn(async move {
                let saved = store.commit(&change, noon() + ALIVE).await.is_ok();
                (change.session.id, saved)
            });
        }
        for (id, saved) in committing.join_all().await {
            assert_eq!(saved, id != stale.id);
        }
        for change in &changes[1..] {
            let session = &change.session;
            assert_eq!(found(backend, session).await, *session);
            assert_eq!(timeline(backend, session).await, ["SessionCreated", change.event]);
            let told = deliveries_of(backend, session).await;
            let expected: &[_] = if session.state.is_closed() { &[hook.id] } else { &[] };
            assert_eq!(told, expected);
        }
        assert_eq!(deliveries_of(backend, &stale).await, []);
        let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
        let started = changes[1..].iter().filter(|change| !change.session.state.is_closed());
        let mut started: Vec<_> = started.map(|change| change.session.id).collect();
        let mut claimed: Vec<_> = claims.iter().map(|claim| claim.session).collect();
        started.sort_unstable();
        claimed.sort_unstable();
        assert_eq!(claimed, started);
    }
}

/// Every column of a change, its jobs and its records: a browser, a failure with its node, and the
/// end with a recording.
pub async fn commits_each_kind_of_change(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let mut saved = session.clone();
    let lease = lease();
    let workflow = DefinitionVersion { version: "1.0.0".into(), sha256: "00".repeat(32) };
    let node = Some("sign-in".to_owned());
    for event in [
        Event::BrowserRequested { lease },
        Event::BrowserStarted,
        Event::ApplicantConnected,
        Event::WorkflowOpened,
        Event::WorkflowLoaded { workflow },
        Event::Failed { why: ErrorCode::AccountLocked, node: node.clone(), retry_until: None },
    ] {
        let change = sample::transition(&saved, event);
        commit(backend, &change).await;
        saved = change.session;
        assert_eq!(found(backend, &session).await, saved);
        let is_held =
            backend.leases.renew(session.id, lease.browser, noon() + ALIVE).await.unwrap();
        assert_eq!(is_held, saved.state.lease().is_some(), "{:?}", saved.state);
    }
    let lines = backend.partner_sessions.timeline(home.owner, session.id).await.unwrap().unwrap();
    let last = lines.last().unwrap();
    assert_eq!((lines.len(), last.status), (7, Status::Error));
    assert_eq!((last.error_code.as_deref(), &last.node), (Some("ACCOUNT_LOCKED"), &node));
    let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
    let mut jobs: Vec<_> = claims.iter().map(|claim| claim.job.name()).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["release_browser", "start_browser"]);
    let recording = backend.recordings.recording(session.id).await.unwrap();
    assert_eq!(recording, Some(RecordingState::Pending));
}

/// A caller may drop the future at any time. The change is saved as a whole or not at all, possibly
/// a moment later.
pub async fn leaves_a_dropped_commit_complete_or_undone(backend: &Backend) {
    let home = team_fixture(backend).await;
    for delay in (0..60).map(|step| Duration::from_micros(step * 50)) {
        let session = inserted(backend, &home).await;
        let (change, _) = requested(&session);
        let commit = backend.sessions.commit(&change, noon() + ALIVE);
        let _ = tokio::time::timeout(delay, commit).await;

        let before = found(backend, &session).await == change.session;
        let claims = backend.outbox.claim(INSTANCE, noon(), LEASE, 10).await.unwrap();
        let pending = claims.iter().any(|claim| claim.session == session.id);
        let after = found(backend, &session).await == change.session;
        assert!(before <= pending && pending <= after, "half a commit after {delay:?}");
    }
}

pub async fn lists_the_newest_first_and_counts_all_matches(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mut sessions = Vec::new();
    for minute in [3, 1, 2, 2] {
        let mut opening = opening(home.owner, home.platform);
        opening.session.created_at = noon() + TimeDelta::minutes(minute);
        backend.sessions.insert(&opening, None).await.unwrap();
        sessions.push(opening.session);
    }
    commit(backend, &ended(&sessions[1])).await;
    sessions.sort_by_key(|session| (session.created_at, session.id));
    sessions.reverse();

    let page = PageRequest { limit: 2, offset: 1 };
    let query = ListQuery { status: None, page };
    let (items, total) = backend.partner_sessions.list(home.owner, query).await.unwrap();
    let expected: Vec<_> = sessions[1..3].iter().map(summary).collect();
    assert_eq!((&items, total), (&expected, 4));
    let query = ListQuery { status: Some(Status::Created), page };
    let (items, total) = backend.partner_sessions.list(home.owner, query).await.unwrap();
    assert_eq!((items, total), (expected, 3));
    let query = ListQuery { status: None, page: PageRequest { limit: 2, offset: i64::MAX } };
    let (items, total) = backend.partner_sessions.list(home.owner, query).await.unwrap();
    assert_eq!((items.len(), total), (0, 4), "beyond the end there is still a total");
}

pub async fn lists_the_sessions_of_all_keys_of_a_team(backend: &Backend) {
    let (home, stranger) = (team_fixture(backend).await, team_fixture(backend).await);
    let second = key(home.team);
    backend.keys.add_key(&second, &hash(), "Second", noon()).await.unwrap();
    let mut sessions = Vec::new();
    for (owner, minute) in [(home.owner, 1), (second.id, 2), (home.owner, 3)] {
        let mut opening = opening(owner, home.platform);
        opening.session.created_at = noon() + TimeDelta::minutes(minute);
        opening.session.terms.external_reference = (minute < 3).then(|| format!("loan-{minute}"));
        backend.sessions.insert(&opening, None).await.unwrap();
        sessions.insert(0, opening.session);
    }
    inserted(backend, &stranger).await;
    commit(backend, &ended(&sessions[1])).await;
    let node = Some("sign-in".to_owned());
    let failed =
        Event::Failed { why: ErrorCode::UnexpectedPage, node: node.clone(), retry_until: None };
    commit(backend, &sample::transition(&sessions[2], failed)).await;
    let found = listed(backend, home.team, &SessionFilter::default()).await;
    let expected: Vec<_> = sessions.iter().map(|session| (session.owner, session.id)).collect();
    assert_eq!(found, expected);
    let text = Some("loan-2".to_owned());
    let by_reference = SessionFilter { text, ..SessionFilter::default() };
    assert_eq!(listed(backend, home.team, &by_reference).await, expected[1..2]);
    assert_eq!(listed(backend, stranger.team, &by_reference).await, [], "of another team");

    let period = |since| ActivityPeriod { environment: Environment::Development, since };
    let activity = async |since, limit| {
        backend.team_sessions.team_activity(home.team, period(since), limit).await.unwrap()
    };
    let activities = activity(noon(), 10).await;
    let statuses: Vec<_> = activities.iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Status::Created, Status::Terminated, Status::Error]);
    assert_eq!(
        (activities[1].created_at, activities[1].error_code.as_deref()),
        (sessions[1].created_at, None)
    );
    assert!(activities[1].closed_at.is_some() && activities[0].closed_at.is_none());
    let at =
        (activities[2].platform, activities[2].error_code.as_deref(), activities[2].node.clone());
    assert_eq!(at, (home.platform, Some("UNEXPECTED_PAGE"), node));
    assert_eq!((activities[0].node.as_ref(), activities[1].node.as_ref()), (None, None));
    assert_eq!(activity(noon() + TimeDelta::minutes(2), 10).await.len(), 2);
    assert_eq!(activity(noon(), 1).await, activities[..1]);
    let live = ActivityPeriod { environment: Environment::Production, since: noon() };
    assert_eq!(backend.team_sessions.team_activity(home.team, live, 10).await.unwrap(), []);

    let counts = async |period, limit| {
        let counts = backend.team_sessions.team_statuses(home.team, period, limit).await.unwrap();
        let had = [Status::Created, Status::Terminated, Status::Error, Status::Running];
        had.map(|status| counts.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count))
    };
    assert_eq!(counts(period(noon()), 10).await, [3, 1, 1, 0], "each session was created");
    assert_eq!(counts(period(noon()), 1).await, [1, 0, 0, 0], "the newest");
    assert_eq!(counts(period(noon() + TimeDelta::minutes(2)), 10).await, [2, 1, 0, 0]);
    assert_eq!(counts(live, 10).await, [0; 4]);
}

/// Each filter of a team's list, and their combination.
pub async fn filters_the_sessions_of_a_team(backend: &Backend) {
    let home = team_fixture(backend).await;
    let live = ApiKey { environment: Environment::Production, ..key(home.team) };
    backend.keys.add_key(&live, &hash(), "Live", noon()).await.unwrap();
    let definition = sample::definition("filtered", "1.0.0");
    let (other, _) = backend.catalogue.publish(&definition, None, noon()).await.unwrap();
    let mut sessions = Vec::new();
    for (minute, owner, platform) in [
        (0, home.owner, home.platform),
        (1, live.id, home.platform),
        (2, home.owner, other),
        (3, home.owner, home.platform),
    ] {
        let mut opening = opening(owner, platform);
        if owner == live.id {
            opening.session.terms.environment = Environment::Production;
        }
        opening.session.created_at = noon() + TimeDelta::minutes(minute);
        opening.session.terms.external_reference = Some(format!("Loan-{minute}{minute}"));
        backend.sessions.insert(&opening, None).await.unwrap();
        sessions.push(opening.session);
    }
    let failed = Event::Failed { why: ErrorCode::AccountLocked, node: None, retry_until: None };
    commit(backend, &sample::transition(&sessions[0], failed)).await;
    commit(backend, &ended(&sessions[3])).await;
    let ids = async |filter: SessionFilter| {
        let found = listed(backend, home.team, &filter).await;
        found.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    let id = |at: usize| sessions[at].id;
    let any = SessionFilter::default;
    let created = SessionFilter { status: Some(Status::Created), ..any() };
    assert_eq!(ids(created).await, [id(2), id(1)]);
    let error_code = Some(ErrorCode::AccountLocked);
    assert_eq!(ids(SessionFilter { error_code, ..any() }).await, [id(0)]);
    let error_code = Some(ErrorCode::MfaFailed);
    assert_eq!(ids(SessionFilter { error_code, ..any() }).await, []);
    assert_eq!(ids(SessionFilter { platform: Some(other), ..any() }).await, [id(2)]);
    let environment = Some(Environment::Production);
    assert_eq!(ids(SessionFilter { environment, ..any() }).await, [id(1)]);
    let minute = |minute| Some(noon() + TimeDelta::minutes(minute));
    let period = SessionFilter { from: minute(1), to: minute(3), ..any() };
    assert_eq!(ids(period.clone()).await, [id(2), id(1)], "the end is not part of it");
    assert_eq!(ids(SessionFilter { platform: Some(home.platform), ..period }).await, [id(1)]);
    let text = |text: &str| SessionFilter { text: Some(text.to_owned()), ..any() };
    assert_eq!(ids(text("Loan-11")).await, [id(1)]);
    assert_eq!(ids(text("loan-")).await, [id(3), id(2), id(1), id(0)], "a part, in any case");
    assert!(ids(text("22")).await.contains(&id(2)));
    assert_eq!(ids(text(&id(1).to_string().to_uppercase()[..20])).await, [id(1)], "an identifier");
    assert_eq!(ids(text("no such reference")).await, []);

    let page = backend.team_sessions.team_sessions(home.team, &any(), None, 1).await.unwrap();
    let [newest] = page.sessions.as_slice() else { panic!("{page:?}") };
    assert_eq!(newest.reference.as_deref(), Some("Loan-33"));
    assert_eq!(
        (newest.environment, newest.error_code.as_deref()),
        (Environment::Development, None)
    );
    let error_code = Some(ErrorCode::AccountLocked);
    let filter = SessionFilter { error_code, ..any() };
    let page = backend.team_sessions.team_sessions(home.team, &filter, None, 1).await.unwrap();
    assert_eq!(page.sessions[0].error_code.as_deref(), Some("ACCOUNT_LOCKED"));
    assert_eq!(page.next, None);
}

/// Each session is on one page, also where several were created at the same time, and where one is
/// created meanwhile.
pub async fn pages_through_the_sessions_of_a_team(backend: &Backend) {
    let home = team_fixture(backend).await;
    let mut expected = Vec::new();
    for minute in [3, 1, 2, 2, 2] {
        let mut opening = opening(home.owner, home.platform);
        opening.session.created_at = noon() + TimeDelta::minutes(minute);
        backend.sessions.insert(&opening, None).await.unwrap();
        expected.push((opening.session.created_at, opening.session.id));
    }
    expected.sort_unstable();
    expected.reverse();
    for text in [None, Some("application-1".to_owned()), Some("application".to_owned())] {
        let filter = SessionFilter { text, ..SessionFilter::default() };
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page =
                backend.team_sessions.team_sessions(home.team, &filter, after, 2).await.unwrap();
            assert!(page.sessions.len() <= 2);
            let summaries = page.sessions.iter().map(|listed| &listed.summary);
            seen.extend(summaries.map(|summary| (summary.created_at, summary.id)));
            after = page.next;
            if after.is_none() {
                break;
            }
            assert!(seen.len() <= expected.len(), "the list ends: {seen:?}");
        }
        assert_eq!(seen, expected, "{filter:?}");
    }
    let any = SessionFilter::default();
    let first = backend.team_sessions.team_sessions(home.team, &any, None, 2);
    let next = first.await.unwrap().next;
    let mut newer = opening(home.owner, home.platform);
    newer.session.created_at = noon() + TimeDelta::minutes(9);
    backend.sessions.insert(&newer, None).await.unwrap();
    let second = backend.team_sessions.team_sessions(home.team, &any, next, 2);
    let second: Vec<_> = second.await.unwrap().sessions;
    let second: Vec<_> = second.iter().map(|listed| listed.summary.id).collect();
    assert_eq!(second, [expected[2].1, expected[3].1], "a newer one shifts no page");
}

/// Returns owners and identifiers of the first hundred sessions that match.
async fn listed(
    backend: &Backend,
    team: TeamId,
    filter: &SessionFilter,
) -> Vec<(ApiKeyId, SessionId)> {
    let page = backend.team_sessions.team_sessions(team, filter, None, 100).await.unwrap();
    page.sessions.into_iter().map(|listed| (listed.owner, listed.summary.id)).collect()
}

fn summary(session: &Session) -> SessionSummary {
    SessionSummary {
        id: session.id,
        status: session.status(),
        platform: session.terms.platform,
        created_at: session.created_at,
        closed_at: session.closed_at,
    }
}

pub async fn finds_expired_sessions(backend: &Backend) {
    let home = team_fixture(backend).await;
    let session = inserted(backend, &home).await;
    let other = inserted(backend, &home).await;
    commit(backend, &ended(&other)).await;
    let early = session.expires_at - TimeDelta::microseconds(1);
    assert_eq!(backend.leases.find_due(early, 10).await.unwrap(), []);
    let due = backend.leases.find_due(session.expires_at, 10).await.unwrap();
    assert_eq!(due, [(session, DueReason::Expired)], "closed sessions do not expire");
}

pub async fn finds_sessions_whose_lease_was_not_renewed(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let (change, lease) = requested(&session);
    commit(backend, &change).await;
    let early = noon() + ALIVE - TimeDelta::microseconds(1);
    assert_eq!(backend.leases.find_due(early, 10).await.unwrap(), []);
    let lapsed = (change.session.clone(), DueReason::BrowserLapsed(lease.browser));
    assert_eq!(
        backend.leases.find_due(noon() + ALIVE, 10).await.unwrap(),
        std::slice::from_ref(&lapsed)
    );

    let later = noon() + ALIVE + ALIVE;
    assert!(backend.leases.renew(session.id, lease.browser, later).await.unwrap());
    assert_eq!(backend.leases.find_due(noon() + ALIVE, 10).await.unwrap(), []);
    assert_eq!(backend.leases.find_due(later, 10).await.unwrap(), [lapsed]);
}

pub async fn finds_offers_of_another_attempt_whose_lease_was_not_renewed(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let (change, lease) = requested(&session);
    commit(backend, &change).await;
    let until = noon() + TimeDelta::minutes(10);
    let (why, node) = (ErrorCode::BrowserUnavailable, None);
    let failed = Event::Failed { why, node, retry_until: Some(until) };
    let change = sample::transition(&change.session, failed);
    commit(backend, &change).await;
    assert!(change.session.state.offered_retry().is_some());
    let later = noon() + ALIVE + ALIVE;
    assert!(backend.leases.renew(session.id, lease.browser, later).await.unwrap());
    assert_eq!(backend.leases.find_due(noon() + ALIVE, 10).await.unwrap(), []);
    let lapsed = (change.session.clone(), DueReason::BrowserLapsed(lease.browser));
    assert_eq!(backend.leases.find_due(later, 10).await.unwrap(), [lapsed]);

    // The next attempt has no browser yet.
    let change = sample::transition(&change.session, Event::RetryRequested);
    commit(backend, &change).await;
    assert!(!backend.leases.renew(session.id, lease.browser, later).await.unwrap());
    assert_eq!(backend.leases.find_due(later, 10).await.unwrap(), []);
    assert_eq!(found(backend, &change.session).await, change.session);
}

pub async fn renews_only_the_lease_of_the_current_browser(backend: &Backend) {
    let session = inserted(backend, &team_fixture(backend).await).await;
    let (change, mine) = requested(&session);
    commit(backend, &change).await;
    let later = noon() + ALIVE + ALIVE;
    assert!(!backend.leases.renew(session.id, lease().browser, later).await.unwrap());
    commit(backend, &ended(&change.session)).await;
    assert!(!backend.leases.renew(session.id, mine.browser, later).await.unwrap());
}

async fn found(backend: &Backend, session: &Session) -> Session {
    backend.partner_sessions.find(session.owner, session.id).await.unwrap().unwrap()
}

/// Returns the names of the events of a session's timeline.
async fn timeline(backend: &Backend, session: &Session) -> Vec<String> {
    let lines = backend.partner_sessions.timeline(session.owner, session.id).await;
    lines.unwrap().unwrap().into_iter().map(|entry| entry.event).collect()
}

/// Returns the webhooks to which a session's end is delivered.
async fn deliveries_of(backend: &Backend, session: &Session) -> Vec<WebhookId> {
    let of = DeliveryScope::Session(session.id);
    let filter = DeliveryFilter { of, state: None, limit: 100 };
    let found = backend.log.find_deliveries(&filter).await.unwrap();
    found.into_iter().map(|delivery| delivery.webhook).collect()
}

fn everything() -> ListQuery {
    ListQuery { status: None, page: PageRequest { limit: 100, offset: 0 } }
}
