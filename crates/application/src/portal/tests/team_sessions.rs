//! The sessions of a team in the portal.

use chrono::TimeDelta;
use domain::{
    account::Role,
    api_key::{ApiKey, Environment, KeyHash},
    fairness::{Tenant, Turn},
    id::{BrowserId, SessionId},
    session::{Event, ProofHash, Status},
};
use ports::{
    StoreError,
    clock::Clock as _,
    driving::{
        FunnelStep, MockSessionService, OverviewRange, PortableAttestation, PortalError,
        RecordingView, SessionError, SessionSearch, TeamSessionService as _,
    },
    key_store::KeyStore as _,
    session_store::SessionFilter,
};
use testkit::sample;
use uuid::Uuid;

use super::{
    fixture::{Fixture, OTHER_TEAM, TEAM, error, refusal},
    services::QUOTAS,
};

/// A search for all sessions that match a filter.
fn search(filter: SessionFilter) -> SessionSearch {
    SessionSearch { filter, after: None, limit: 20 }
}

fn by_text(text: &str) -> SessionSearch {
    search(SessionFilter { text: Some(text.to_owned()), ..SessionFilter::default() })
}

#[tokio::test]
async fn a_team_sees_the_sessions_of_all_its_keys() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    let first = fixture.add_session(TEAM).await;
    fixture.clock.forward(TimeDelta::minutes(1));
    let second = fixture.add_session(TEAM).await;
    fixture.add_session(OTHER_TEAM).await;
    let sessions = fixture.sessions(MockSessionService::new());
    let all = search(SessionFilter::default());
    let listed = sessions.team_sessions(&viewer, all.clone()).await.unwrap().sessions;
    let ids: Vec<_> = listed.iter().map(|session| session.listed.summary.id).collect();
    assert_eq!(ids, [second.id, first.id], "the newest first");
    assert!(first.owner != second.owner);
    for session in &listed {
        assert_eq!((session.platform.as_str(), session.key.as_str()), ("Sample", "Backend"));
    }
    let count =
        async |search| sessions.team_sessions(&viewer, search).await.unwrap().sessions.len();
    assert_eq!(count(by_text("application-1")).await, 2);
    assert_eq!(count(by_text("application-2")).await, 0);
    let status = Some(Status::Terminated);
    assert_eq!(count(search(SessionFilter { status, ..SessionFilter::default() })).await, 0);
    let page = sessions.team_sessions(&viewer, SessionSearch { limit: 1, ..all }).await.unwrap();
    assert_eq!((page.sessions.len(), page.next.map(|next| next.id)), (1, Some(second.id)));
    let platforms = sessions.platforms(&viewer).await.unwrap();
    assert_eq!(platforms, [(first.terms.platform, "Sample".to_owned())]);
}

#[tokio::test]
async fn the_overview_counts_the_sessions_of_thirty_days() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    fixture.add_session(TEAM).await;
    fixture.clock.forward(TimeDelta::days(29));
    let terminated = |session| sample::transition(&session, Event::TerminatedByPartner).session;
    fixture.insert_session(TEAM, terminated).await;
    fixture.add_session(OTHER_TEAM).await;
    let sessions = fixture.sessions(MockSessionService::new());
    let month = OverviewRange::ThirtyDays;
    let overview = sessions.overview(&viewer, month, None).await.unwrap();
    assert_eq!((overview.created, overview.completed, overview.ended), (2, 0, 1));
    assert_eq!((overview.days.len(), overview.cut), (30, false));
    assert_eq!(overview.days.last().unwrap().date, fixture.clock.now().date_naive());
    assert_eq!(overview.days.last().unwrap().counts, [(Status::Terminated, 1)]);
    assert_eq!(overview.days[0].counts, [(Status::Created, 1)]);
    fixture.clock.forward(TimeDelta::days(1));
    let later = sessions.overview(&viewer, month, None).await.unwrap();
    assert_eq!(later.created, 1, "the first is too old");
    let week = sessions.overview(&viewer, OverviewRange::SevenDays, None).await.unwrap();
    assert_eq!((week.days.len(), week.created), (7, 1));
    let quarter = sessions.overview(&viewer, OverviewRange::NinetyDays, None).await.unwrap();
    assert_eq!((quarter.days.len(), quarter.created), (90, 2));
    assert_eq!(quarter.funnel.first(), Some(&(FunnelStep::Created, 2)));
    assert_eq!((quarter.platforms[0].name.as_str(), quarter.platforms[0].failed), ("Sample", 1));
}

#[tokio::test]
async fn the_overview_separates_environments() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    fixture.add_session(TEAM).await;
    let sessions = fixture.sessions(MockSessionService::new());
    let read = async |environment| {
        let range = OverviewRange::SevenDays;
        let overview = sessions.overview(&viewer, range, environment).await.unwrap();
        (overview.environment, overview.created)
    };
    let (development, production) = (Environment::Development, Environment::Production);
    assert_eq!(read(None).await, (development, 1), "the team has no other key");
    assert_eq!(read(Some(production)).await, (production, 0));
    let live = ApiKey { environment: production, ..sample::key(TEAM) };
    fixture.store.add_key(&live, &KeyHash([7; 32]), "Live", sample::noon()).await.unwrap();
    assert_eq!(read(None).await, (production, 0));
    assert_eq!(read(Some(development)).await, (development, 1));
}

#[tokio::test]
async fn the_quotas_say_what_a_team_uses() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    let now = fixture.clock.now();
    let browser = |number| BrowserId::from_uuid(Uuid::from_u128(number));
    for (number, team) in [(1, TEAM), (2, TEAM), (3, TEAM), (4, OTHER_TEAM)] {
        let tenant = Tenant { team, environment: Environment::Development };
        let turn = fixture.turns.ask(browser(number), tenant, now);
        assert_eq!(turn == Turn::Now, number <= 2, "two run at once in development");
    }
    let quotas = fixture.sessions(MockSessionService::new()).quotas(&viewer).await.unwrap();
    assert_eq!((quotas.running, quotas.waiting), (2, 1));
    assert_eq!(quotas.browsers, QUOTAS);
}

#[tokio::test]
async fn a_session_is_shown_with_its_recording_if_it_has_one() {
    let fixture = Fixture::new().await;
    let viewer = fixture.user(Role::Viewer).await;
    let session = fixture.add_session(TEAM).await;
    for (recording, expected) in [
        (Ok(RecordingView::Pending), Some(RecordingView::Pending)),
        (Err(SessionError::NotFound), None),
    ] {
        let mut partner = MockSessionService::new();
        let (owner, id) = (session.owner, session.id);
        partner
            .expect_timeline()
            .withf(move |key, read| key.id == owner && *read == id)
            .return_once(|_, _| Ok(vec![]));
        partner.expect_recording().return_once(|_, _| recording);
        let shown = fixture.sessions(partner).team_session(&viewer, id).await.unwrap();
        assert_eq!(shown.recording, expected);
        assert_eq!(shown.session, session);
        assert_eq!((shown.platform.as_str(), shown.key.as_str()), ("Sample", "Backend"));
    }
}

#[tokio::test]
async fn failures_of_the_partners_use_cases_are_told_to_the_member() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let id = fixture.add_session(TEAM).await.id;
    for (failure, expected) in [
        (SessionError::NotFound, "session not found"),
        (SessionError::Busy, "the session is being updated. Try again"),
        (
            SessionError::Store(StoreError::new("change a session", "broken")),
            "the store failed to change a session",
        ),
    ] {
        let mut partner = MockSessionService::new();
        partner.expect_terminate().return_once(|_, _| Err(failure));
        assert_eq!(refusal(fixture.sessions(partner).end_session(&member, id).await), expected);
    }
    let mut partner = MockSessionService::new();
    partner.expect_timeline().return_once(|_, _| Ok(vec![]));
    partner.expect_recording().return_once(|_, _| Err(SessionError::Busy));
    let shown = fixture.sessions(partner).team_session(&member, id).await;
    assert_eq!(refusal(shown), "the session is being updated. Try again");
}

#[tokio::test]
async fn a_session_is_ended_with_the_key_that_created_it() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let session = fixture.add_session(TEAM).await;
    let (owner, id) = (session.owner, session.id);
    let mut partner = MockSessionService::new();
    partner
        .expect_terminate()
        .withf(move |key, ended| key.id == owner && *ended == id)
        .times(1)
        .return_once(|_, _| Ok(session));
    fixture.sessions(partner).end_session(&member, id).await.unwrap();
    assert_eq!(fixture.actions().await, [format!("session.end {id}")]);
}

#[tokio::test]
async fn a_download_of_an_attestation_is_recorded() {
    let fixture = Fixture::new().await;
    let (member, viewer) = (fixture.user(Role::Member).await, fixture.user(Role::Viewer).await);
    let id = fixture.add_session(TEAM).await.id;
    let partner = |attestation: Option<PortableAttestation>| {
        let mut partner = MockSessionService::new();
        partner.expect_attestation().return_once(|_, _| Ok(attestation));
        partner
    };
    let absent = fixture.sessions(partner(None)).team_attestation(&member, id).await;
    assert_eq!(refusal(absent), "attestation not found");
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
    let found = PortableAttestation {
        proof: ProofHash::new(&"07".repeat(32)).unwrap(),
        file: b"cbor".to_vec(),
    };
    let sessions = fixture.sessions(partner(Some(found.clone())));
    let refused = error(sessions.team_attestation(&viewer, id).await);
    assert!(matches!(refused, PortalError::Forbidden), "it holds the applicant's data");
    assert_eq!(sessions.team_attestation(&member, id).await.unwrap(), found);
    assert_eq!(fixture.actions().await, [format!("session.attestation {id}")]);
    let fixture = fixture.with_broken_audit_log();
    let unrecorded = fixture.sessions(partner(Some(found))).team_attestation(&member, id).await;
    assert!(matches!(error(unrecorded), PortalError::Store(_)));
}

#[tokio::test]
async fn sessions_of_another_team_are_as_if_they_were_not_there() {
    let fixture = Fixture::new().await;
    let operator = fixture.user(Role::Operator).await;
    let theirs = fixture.add_session(OTHER_TEAM).await.id;
    // The partner's use cases are not called at all.
    let sessions = fixture.sessions(MockSessionService::new());
    for id in [theirs, SessionId::from_uuid(Uuid::nil())] {
        let refusals = [
            sessions.team_session(&operator, id).await.map(drop),
            sessions.team_attestation(&operator, id).await.map(drop),
            sessions.end_session(&operator, id).await,
        ];
        for refused in refusals {
            assert_eq!(refusal(refused), "session not found");
        }
    }
    assert_eq!(fixture.actions().await, <[&str; 0]>::default());
}

#[tokio::test]
async fn a_session_is_ended_only_once_that_is_recorded() {
    let fixture = Fixture::new().await;
    let member = fixture.user(Role::Member).await;
    let id = fixture.add_session(TEAM).await.id;
    let fixture = fixture.with_broken_audit_log();
    let failed = fixture.sessions(MockSessionService::new()).end_session(&member, id).await;
    assert!(matches!(error(failed), PortalError::Store(_)));
}
