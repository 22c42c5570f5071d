//! The complete transition table as a snapshot, and properties of any sequence of events.

use std::fmt::Write as _;

use chrono::{DateTime, TimeDelta};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::{
    api_key::Environment,
    error_code::ErrorCode,
    id::{BrowserId, InstanceId, PlatformId},
    request::{AttestationRequest, Location, MaxAttempts},
    worker_region::WorkerRegion,
    workflow::{AttestMode, PromptKind},
};

const LEASE: Lease =
    Lease { browser: BrowserId::from_u128(7), node: InstanceId::from_u128(8), region: None };

const OTHER_LEASE: Lease =
    Lease { browser: BrowserId::from_u128(9), node: InstanceId::from_u128(10), region: None };

fn prompt() -> PendingPrompt {
    PendingPrompt {
        kind: PromptKind::Login,
        text_key: "sign_in".into(),
        deadline: DateTime::UNIX_EPOCH,
        hint: None,
    }
}

fn live(phase: Phase) -> State {
    State::Live { lease: LEASE, history: History::default(), phase }
}

const RETRY_UNTIL: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn failed(is_present: bool) -> Event {
    let retry_until = is_present.then_some(RETRY_UNTIL);
    Event::Failed { why: ErrorCode::UnexpectedPage, node: None, retry_until }
}

fn terms(attestation: AttestationRequest) -> TransitionTerms {
    TransitionTerms { attestation, max_attempts: MaxAttempts::default() }
}

fn states() -> Vec<(&'static str, State)> {
    let verifying = |step| live(Phase::Verifying { collected: Collected::default(), step });
    let awaiting = |then| live(Phase::AwaitingUser { ask: prompt(), then });
    let history =
        |losses, failed_attempts| History { losses, failed_attempts, ..History::default() };
    vec![
        ("CREATED", State::START),
        ("INITIALIZING", State::Initializing { lease: LEASE, history: history(0, 0) }),
        ("READY", live(Phase::Ready)),
        ("CONNECTED", live(Phase::Connected)),
        ("LOADING_TREE", live(Phase::LoadingTree)),
        ("RUNNING", live(Phase::Running)),
        ("AWAITING_USER (running)", awaiting(Resume::Running)),
        ("AWAITING_USER (collecting)", awaiting(Resume::CollectingData)),
        ("COLLECTING_DATA", live(Phase::CollectingData)),
        ("VERIFYING", verifying(AttestationStep::Asked)),
        ("VERIFYING (proved)", verifying(AttestationStep::Proved)),
        (
            "READY (two browsers lost)",
            State::Live { lease: LEASE, history: history(LOSSES_ALLOWED, 0), phase: Phase::Ready },
        ),
        (
            "READY (away ten times)",
            State::Live {
                lease: LEASE,
                history: History { absences: ABSENCES_ALLOWED, ..History::default() },
                phase: Phase::Ready,
            },
        ),
        (
            "READY (two attempts failed)",
            State::Live { lease: LEASE, history: history(0, 2), phase: Phase::Ready },
        ),
        (
            "AWAITING_USER (retry)",
            State::Failed {
                lease: LEASE,
                history: history(1, 1),
                why: ErrorCode::MfaTimeout,
                node: Some("code".into()),
                until: RETRY_UNTIL,
            },
        ),
        (
            "TERMINATED",
            State::Closed { outcome: Outcome::Terminated, ran: None, region: None, attempts: 1 },
        ),
    ]
}

fn events() -> Vec<Event> {
    let incomplete = Collected { data: ExtractedData::new(), missing: vec!["tier".into()] };
    let attestation = attestation(&["accountId"], Some(AttestMode::ZktlsRequest));
    vec![
        Event::BrowserRequested { lease: LEASE },
        Event::BrowserStarted,
        Event::StartWithdrawn,
        Event::WaitMoved { to: OTHER_LEASE, since: RETRY_UNTIL },
        Event::ApplicantAbsent,
        Event::BrowserLost,
        Event::ApplicantConnected,
        Event::WorkflowOpened,
        Event::WorkflowLoaded {
            workflow: DefinitionVersion { version: "1.0.0".into(), sha256: String::new() },
        },
        Event::InputNeeded { ask: prompt() },
        Event::DeadlineChanged { deadline: RETRY_UNTIL, hint: None },
        Event::InputGiven,
        Event::CollectionStarted,
        Event::DataCollected { collected: Collected::default() },
        Event::DataCollected { collected: incomplete },
        Event::AttestationAdvanced { to: AttestationStep::Recorded },
        Event::AttestationIssued { attestation },
        Event::AttestationRefused,
        failed(false),
        failed(true),
        Event::Failed { why: ErrorCode::AccountLocked, node: None, retry_until: Some(RETRY_UNTIL) },
        Event::RetryRequested,
        Event::RetryDeclined,
        Event::RetryExpired,
        Event::ConsentDeclined,
        Event::ApplicantCancelled,
        Event::Expired,
        Event::TimeSkipped { by: SkippedTime::seconds(60).unwrap() },
        Event::TerminatedByPartner,
    ]
}

#[test]
fn every_event_is_in_the_transition_table() {
    let listed: Vec<_> = events().iter().map(Event::name).collect();
    for name in Event::NAMES {
        assert!(listed.contains(name), "{name}");
    }
}

/// Returns what distinguishes events of one name.
fn variant(event: &Event) -> &'static str {
    if let Event::DataCollected { collected } = event
        && !collected.missing.is_empty()
    {
        return " (partly)";
    }
    let Event::Failed { why, retry_until, .. } = event else { return "" };
    match retry_until {
        Some(_) if *why == ErrorCode::AccountLocked => " (no use)",
        Some(_) => " (present)",
        None => "",
    }
}

#[test]
fn the_transition_table() {
    let mut table = String::new();
    for (name, state) in states() {
        for event in events() {
            let event_name = format!("{}{}", event.name(), variant(&event));
            let plain = table_entry(AttestationRequest::NotWanted, &state, &event);
            let attested = table_entry(AttestationRequest::Wanted, &state, &event);
            if let Some(line) = &plain {
                writeln!(table, "{name:<27} {event_name:<23} {line}").unwrap();
            }
            if let Some(line) = attested.filter(|line| Some(line) != plain.as_ref()) {
                writeln!(table, "{:<27} {event_name:<23} {line}", format!("{name} *")).unwrap();
            }
        }
    }
    table.push_str("* with generateAttestation\n");
    insta::assert_snapshot!(table);
}

fn table_entry(attestation: AttestationRequest, state: &State, event: &Event) -> Option<String> {
    let next = step(terms(attestation), state, event.clone()).ok().flatten()?;
    let jobs = next.effects.jobs.iter().map(Job::name);
    let records = next.effects.records.iter().map(|record| record.name());
    let effects: Vec<_> = jobs.chain(records).collect();
    let code = next.state.outcome().and_then(Outcome::error_code).map_or("", ErrorCode::as_str);
    let to = format!("{} {code}", next.state.status());
    Some(format!("{:<38} {}", to.trim_end(), effects.join(" ")).trim_end().to_owned())
}

fn event_sequence() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(prop::sample::select(events()), 0..80)
}

proptest! {
    /// A closed session notifies the partner once, an open one not at all; each started browser is
    /// released once; progress never decreases; an attempt loses at most three browsers and gives at
    /// most ten back, and there are at most three attempts.
    #[test]
    fn effects_are_emitted_once(wanted: bool, events in event_sequence()) {
        let attestation = if wanted { AttestationRequest::Wanted } else { AttestationRequest::NotWanted };
        let mut state = State::START;
        let mut progress = Progress::default();
        let (mut jobs, mut records) = (vec![], vec![]);
        for event in events {
            if let Ok(Some(next)) = step(terms(attestation), &state, event) {
                prop_assert!(!state.is_closed(), "a closed session changed");
                prop_assert!(next.state.attempts() >= state.attempts());
                state = next.state;
                let after = progress.after(&state);
                prop_assert!(after >= progress);
                progress = after;
                jobs.extend(next.effects.jobs);
                records.extend(next.effects.records);
            }
        }
        let count = |name| jobs.iter().filter(|job| job.name() == name).count();
        let notified = records.iter().filter(|record| **record == Record::NotifyPartner).count();
        prop_assert_eq!(notified, usize::from(state.is_closed()));
        let running = usize::from(state.lease().is_some() && state.offered_retry().is_none());
        prop_assert_eq!(count("release_browser") + running, count("start_browser"));
        let max_attempts = usize::from(MaxAttempts::default().get());
        prop_assert!(usize::from(state.attempts()) <= max_attempts);
        let waits = usize::from(LOSSES_ALLOWED) + usize::from(ABSENCES_ALLOWED) + 1;
        let of_attempt = waits * (usize::from(MOVES_ALLOWED) + 1);
        prop_assert!(count("start_browser") <= of_attempt * max_attempts);
    }

    /// A stored state deserializes to an equal one.
    #[test]
    fn states_survive_serialization(wanted: bool, events in event_sequence()) {
        let attestation = if wanted { AttestationRequest::Wanted } else { AttestationRequest::NotWanted };
        let mut state = State::START;
        for event in events {
            if let Ok(Some(next)) = step(terms(attestation), &state, event) {
                state = next.state;
            }
            let saved = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(&serde_json::from_str::<State>(&saved).unwrap(), &state);
        }
    }
}

#[test]
fn terminating_a_closed_session_changes_nothing() {
    let closed =
        State::Closed { outcome: Outcome::Terminated, ran: None, region: None, attempts: 1 };
    let terms = terms(AttestationRequest::NotWanted);
    assert_eq!(step(terms, &closed, Event::TerminatedByPartner), Ok(None));
}

/// The partner is notified of one outcome, however many attempts it takes.
#[test]
fn a_failed_attempt_can_be_repeated_as_often_as_the_terms_say() {
    for max in 1..=5 {
        let mut session = session();
        session.terms.max_attempts = MaxAttempts::new(max.into()).unwrap();
        let now = session.created_at;
        let apply = |session: &Session, event: Event| session.apply(event, now).unwrap().unwrap();
        for attempt in 1..=max {
            session = apply(&session, Event::BrowserRequested { lease: LEASE }).session;
            assert_eq!(session.state.attempts(), attempt);
            let change = apply(&session, failed(true));
            session = change.session;
            let is_last = attempt == max;
            assert_eq!(session.state.is_closed(), is_last);
            assert_eq!(session.state.attempts(), attempt);
            let is_notified = change.effects.records.contains(&Record::NotifyPartner);
            assert_eq!(is_notified, is_last);
            if !is_last {
                assert_eq!(session.status(), Status::AwaitingUser);
                let offered = Some((ErrorCode::UnexpectedPage, RETRY_UNTIL));
                assert_eq!(session.state.offered_retry(), offered);
                session = apply(&session, Event::RetryRequested).session;
                assert_eq!(session.status(), Status::Created);
            }
        }
        assert_eq!(session.status(), Status::Error);
    }
}

/// Neither a loss nor the partner's view of the attempt changes while the applicant is away, until the
/// session has begun too often.
#[test]
fn a_session_whose_applicant_is_away_begins_again_only_so_often() {
    let mut session = session();
    let now = session.created_at;
    let apply = |session: &Session, event: Event| session.apply(event, now).unwrap().unwrap();
    for _ in 0..ABSENCES_ALLOWED {
        session = apply(&session, Event::BrowserRequested { lease: LEASE }).session;
        let change = apply(&session, Event::ApplicantAbsent);
        assert_eq!(change.effects.jobs, [Job::ReleaseBrowser { lease: LEASE }]);
        session = change.session;
        assert_eq!((session.status(), session.state.attempts()), (Status::Created, 1));
        assert!(!session.state.has_run(), "there is nothing to keep a recording of");
    }
    session = apply(&session, Event::BrowserRequested { lease: LEASE }).session;
    session = apply(&session, Event::BrowserStarted).session;
    session = apply(&session, Event::ApplicantAbsent).session;
    assert_eq!(session.state.error_code(), Some(ErrorCode::UserInputTimeout));
}

/// The place goes with the session, and a session is not moved without end.
#[test]
fn a_session_that_waits_is_moved_only_so_often_until_it_has_a_browser() {
    let mut session = session();
    let now = session.created_at;
    let apply = |session: &Session, event: Event| session.apply(event, now);
    let since = now - TimeDelta::seconds(40);
    session = apply(&session, Event::BrowserRequested { lease: LEASE }).unwrap().unwrap().session;
    let here = Event::WaitMoved { to: LEASE, since };
    assert!(apply(&session, here).is_err(), "it waits there already");
    for count in 0..MOVES_ALLOWED {
        let (from, to) = if count % 2 == 0 { (LEASE, OTHER_LEASE) } else { (OTHER_LEASE, LEASE) };
        let change = apply(&session, Event::WaitMoved { to, since }).unwrap().unwrap();
        let jobs = [Job::StartBrowser { lease: to }, Job::ReleaseBrowser { lease: from }];
        assert_eq!(change.effects.jobs, jobs);
        session = change.session;
        assert_eq!(session.state.lease(), Some(to));
        assert_eq!(session.state.waiting_since(), Some(since));
        assert_eq!((session.status(), session.state.attempts()), (Status::Initializing, 1));
    }
    assert!(apply(&session, Event::WaitMoved { to: OTHER_LEASE, since }).is_err());
    session = apply(&session, Event::BrowserStarted).unwrap().unwrap().session;
    assert!(apply(&session, Event::WaitMoved { to: OTHER_LEASE, since }).is_err());
    session = apply(&session, Event::BrowserLost).unwrap().unwrap().session;
    session = apply(&session, Event::BrowserRequested { lease: LEASE }).unwrap().unwrap().session;
    assert_eq!(session.state.waiting_since(), None, "the next wait is a new one");
    assert!(apply(&session, Event::WaitMoved { to: OTHER_LEASE, since }).is_ok());
}

/// Where the pages of an account were shown is known until the end.
#[test]
fn the_region_of_the_last_browser_is_remembered() {
    let mut session = session();
    let now = session.created_at;
    let asked = session.terms.worker_region;
    let there = WorkerRegion::AsiaSouth;
    assert_ne!(asked, there);
    let lease = Lease { region: Some(there), ..LEASE };
    let apply =
        |session: &Session, event: Event| session.apply(event, now).unwrap().unwrap().session;
    assert_eq!(session.region_in_use(), asked);
    session = apply(&session, Event::BrowserRequested { lease });
    assert_eq!(session.region_in_use(), there);
    let waited = apply(&session, Event::TerminatedByPartner);
    assert_eq!(waited.region_in_use(), asked, "no browser has run");
    session = apply(&session, Event::BrowserStarted);
    assert_eq!(apply(&session, Event::TerminatedByPartner).region_in_use(), there);
    session = apply(&session, Event::BrowserLost);
    assert_eq!(session.region_in_use(), there);
    assert_eq!(apply(&session, Event::Expired).region_in_use(), there);
    let other = Lease { region: Some(asked), ..OTHER_LEASE };
    session = apply(&session, Event::BrowserRequested { lease: other });
    assert_eq!(session.region_in_use(), asked);
    assert_eq!(apply(&session, Event::Expired).region_in_use(), there, "it ran there only");
}

/// However the applicant leaves a failed attempt, the session ends with what failed and where.
#[test]
fn a_session_without_another_attempt_ends_with_the_failure() {
    let mut session = session();
    let (why, node) = (ErrorCode::MfaTimeout, Some("code".to_owned()));
    let history = History { failed_attempts: 1, ..History::default() };
    session.state =
        State::Failed { lease: LEASE, history, why, node: node.clone(), until: RETRY_UNTIL };
    let now = session.created_at;
    for event in [
        Event::RetryDeclined,
        Event::RetryExpired,
        Event::ApplicantCancelled,
        Event::Expired,
        failed(true),
    ] {
        let change = session.apply(event, now).unwrap().unwrap();
        assert_eq!(change.session.state.outcome(), Some(&Outcome::Error { why }));
        assert_eq!(change.node, node);
    }
}

/// Sessions that were stored before attempts were counted.
#[test]
fn states_without_attempts_are_read() {
    let live = json!({ "state": "initializing", "losses": 1, "lease": LEASE });
    let history = History { losses: 1, ..History::default() };
    let state = State::Initializing { lease: LEASE, history };
    assert_eq!(serde_json::from_value::<State>(live).unwrap(), state);
    let closed = json!({ "state": "closed", "outcome": { "outcome": "terminated" }, "ran": null });
    let state =
        State::Closed { outcome: Outcome::Terminated, ran: None, region: None, attempts: 1 };
    assert_eq!(serde_json::from_value::<State>(closed).unwrap(), state);
}

#[test]
fn any_event_after_the_expiry_expires_the_session() {
    let session = session();
    for event in events() {
        let change = session.apply(event, session.expires_at).unwrap().unwrap();
        let code = change.session.state.outcome().and_then(Outcome::error_code);
        assert_eq!(code, Some(ErrorCode::SessionExpired));
    }
}

#[test]
fn erasing_keeps_the_outcome_and_removes_all_data_of_the_applicant() {
    let open = session();
    assert_eq!(open.erase(open.created_at), None, "only a closed session is erased");
    let data = ExtractedData::from_iter([("accountId".to_owned(), json!("4711"))]);
    let outcome = Outcome::Completed { data, attestation: None };
    let receiver = Some(crate::request::Contact::default());
    let closed = Session {
        state: State::Closed { outcome, ran: None, region: None, attempts: 1 },
        terms: SessionTerms { receiver, ..open.terms.clone() },
        ..open
    };
    let change = closed.erase(closed.expires_at).unwrap();
    assert_eq!(change.session.status(), Status::Completed);
    assert_eq!((change.session.data(), &change.session.terms.receiver), (None, &None));
    assert!(!serde_json::to_string(&change.session.state).unwrap().contains("4711"));
    let body = crate::webhook::payload(&change.session).unwrap();
    assert_eq!(body.get("extractedData"), None);
    assert_eq!(change.session.erase(closed.expires_at), None);
}

#[test]
fn the_scope_of_an_attestation_is_stored_beside_its_hash() {
    let data = ExtractedData::new();
    let attested = attestation(&["accountId", "tier"], Some(AttestMode::FullReveal));
    let outcome = Outcome::Completed { data: data.clone(), attestation: Some(attested) };
    let stored = json!({
        "outcome": "completed", "data": {}, "proof": "0a".repeat(32),
        "attested_fields": ["accountId", "tier"], "attestation_mode": "full-reveal",
    });
    assert_eq!(json!(outcome), stored);
    assert_eq!(serde_json::from_value::<Outcome>(stored).unwrap(), outcome);
    // The form that was stored before the scope was: no field and no mode is claimed.
    let before = json!({ "outcome": "completed", "data": {}, "proof": "0a".repeat(32) });
    let attestation = Some(attestation(&[], None));
    let read: Outcome = serde_json::from_value(before).unwrap();
    assert_eq!(read, Outcome::Completed { data: data.clone(), attestation });
    let before = json!({ "outcome": "completed", "data": {}, "proof": null });
    let read: Outcome = serde_json::from_value(before).unwrap();
    assert_eq!(read, Outcome::Completed { data, attestation: None });
    for attestation in [None, Some(self::attestation(&["tier"], Some(AttestMode::ZktlsRequest)))] {
        let (collected, why) = (Collected::default(), ErrorCode::DataIncomplete);
        let outcome = Outcome::PartialComplete { collected, why, attestation };
        assert_eq!(serde_json::from_value::<Outcome>(json!(outcome)).unwrap(), outcome);
    }
}

#[test]
fn stored_terms_name_an_instance_for_drafts_only() {
    let terms = session().terms;
    let stored = json!(terms);
    assert_eq!(stored.get("studio"), None);
    assert_eq!(serde_json::from_value::<SessionTerms>(stored).unwrap(), terms);
    let draft = SessionTerms { studio: Some(InstanceId::from_u128(8)), ..terms };
    assert_eq!(serde_json::from_value::<SessionTerms>(json!(draft)).unwrap(), draft);
}

#[test]
fn every_status_survives_serialization() {
    for status in Status::ALL {
        assert_eq!(status.as_str().parse(), Ok(*status));
        assert_eq!(json!(status), json!(status.as_str()));
    }
}

fn attestation(fields: &[&str], mode: Option<AttestMode>) -> IssuedAttestation {
    let fields = fields.iter().map(|&field| field.to_owned()).collect();
    IssuedAttestation { proof: ProofHash::new(&"0a".repeat(32)).unwrap(), fields, mode }
}

fn session() -> Session {
    let now = DateTime::UNIX_EPOCH;
    Session {
        id: SessionId::from_uuid(Uuid::nil()),
        owner: ApiKeyId::from_uuid(Uuid::nil()),
        terms: SessionTerms {
            platform: PlatformId(1),
            environment: Environment::Development,
            location: Location { country: "US".into(), region: None, city: None },
            worker_region: WorkerRegion::closest_to("US", None),
            attestation: AttestationRequest::NotWanted,
            attestation_challenge: None,
            purpose: None,
            return_url: None,
            max_attempts: MaxAttempts::default(),
            custom_url: None,
            studio: None,
            receiver: None,
            receiver_id: None,
            invitation: None,
            external_reference: None,
        },
        state: State::START,
        progress: Progress::default(),
        workflow: None,
        version: Version::FIRST,
        created_at: now,
        expires_at: now + TimeDelta::hours(1),
        closed_at: None,
        erased_at: None,
    }
}

#[test]
fn skipped_time_moves_the_limits_and_ends_what_has_passed() {
    let skip = |session: &Session, seconds, now| {
        let by = SkippedTime::seconds(seconds).unwrap();
        session.apply(Event::TimeSkipped { by }, now).unwrap().unwrap().session
    };
    let session = session();
    let now = session.created_at;
    let ask = PendingPrompt { deadline: now + TimeDelta::seconds(600), ..prompt() };
    let waiting = Session {
        state: live(Phase::AwaitingUser { ask, then: Resume::Running }),
        ..session.clone()
    };
    let nearer = skip(&waiting, 100, now);
    assert_eq!(nearer.expires_at, session.expires_at - TimeDelta::seconds(100));
    assert_eq!(nearer.state.ask().unwrap().deadline, now + TimeDelta::seconds(500));
    let nearer = skip(&nearer, 50, now);
    assert_eq!(nearer.state.skipped(), SkippedTime::seconds(150).unwrap());
    assert_eq!(nearer.status(), Status::AwaitingUser);

    let left = u32::try_from((session.expires_at - now).num_seconds()).unwrap();
    let expired = skip(&session, left, now);
    assert_eq!(
        expired.state.outcome().and_then(Outcome::error_code),
        Some(ErrorCode::SessionExpired)
    );
    let text = serde_json::to_string(&session.state).unwrap();
    assert!(!text.contains("skipped"), "what has not skipped time is stored as before: {text}");
}
