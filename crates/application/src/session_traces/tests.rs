//! Which spans a session has, and from when to when.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    request::AttestationRequest,
    session::{AttestationStep, Collected, Event, PendingPrompt, Status, Version},
    workflow::PromptKind,
};
use ports::{
    clock::Clock as _,
    delivery::{Delivery, DeliveryAttempt},
    spans::{SpanAttribute, SpanSubject, SpanTrace},
    webhook_sender::{FailureCause, WebhookRequest, WebhookResponse},
};
use testkit::sample::{self, noon};

use super::SessionTraces;
use crate::{
    advance::SessionEngine,
    testing::{KeptSpans, World, running},
};

/// A process on the store of a world that records its traces.
fn traced(world: &World, is_sampled: bool) -> (SessionEngine, Arc<KeptSpans>) {
    let kept = Arc::new(KeptSpans::new(is_sampled));
    let engine = SessionEngine {
        sessions: world.store.clone(),
        leases: world.store.clone(),
        clock: world.clock.clone(),
        hub: world.engine.hub.clone(),
        wakeups: world.engine.wakeups.clone(),
        traces: SessionTraces::new(kept.clone(), world.store.clone()),
    };
    (engine, kept)
}

async fn advance(world: &World, engine: &SessionEngine, id: SessionId, events: Vec<Event>) {
    for event in events {
        world.clock.forward(TimeDelta::seconds(1));
        engine.advance(id, None, event).await.unwrap();
    }
}

fn input_needed(deadline: DateTime<Utc>) -> Event {
    let kind = PromptKind::Otp;
    Event::InputNeeded {
        ask: PendingPrompt { kind, text_key: "code".into(), deadline, hint: None },
    }
}

fn later(deadline: DateTime<Utc>) -> Event {
    Event::DeadlineChanged { deadline, hint: Some("sms ***56".into()) }
}

const fn status(status: Status, since: i32) -> SpanSubject {
    SpanSubject::Status { status, since: Version(since) }
}

#[tokio::test(start_paused = true)]
async fn each_status_has_a_span_that_begins_where_the_one_before_ends() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let id = world.session().await;
    let mut events = running(sample::lease()).to_vec();
    events.extend([input_needed(noon()), Event::InputGiven]);
    let why = ErrorCode::InternalError;
    events.push(Event::Failed { why, node: Some("signIn".into()), retry_until: None });
    advance(&world, &engine, id, events).await;

    let spans = kept.all();
    assert!(spans.iter().all(|span| span.trace == SpanTrace::Session(id)));
    let (statuses, roots): (Vec<_>, Vec<_>) =
        spans.into_iter().partition(|span| span.subject != SpanSubject::Session);
    let expected = [
        status(Status::Created, 1),
        status(Status::Initializing, 2),
        status(Status::Ready, 3),
        status(Status::Connected, 4),
        status(Status::LoadingTree, 5),
        status(Status::Running, 6),
        status(Status::AwaitingUser, 7),
        status(Status::Running, 8),
    ];
    assert_eq!(statuses.iter().map(|span| span.subject.clone()).collect::<Vec<_>>(), expected);
    let mut at = world.read(id).await.created_at;
    for span in &statuses {
        assert_eq!((span.start, span.end - span.start), (at, TimeDelta::seconds(1)), "{span:?}");
        at = span.end;
    }
    let prompt = SpanAttribute::Prompt(PromptKind::Otp);
    let asked: Vec<_> = statuses.iter().filter(|span| span.attributes.contains(&prompt)).collect();
    assert!(matches!(asked[..], [only] if only.subject == status(Status::AwaitingUser, 7)));
    let last = statuses.last().unwrap();
    assert_eq!(last.error, Some("INTERNAL_ERROR"));
    assert!(last.attributes.contains(&SpanAttribute::Node("signIn".into())));
    assert!(last.attributes.contains(&SpanAttribute::Event("Failed")));

    let [root] = &roots[..] else { panic!("{roots:?}") };
    assert_eq!((root.start, root.end), (world.read(id).await.created_at, at));
    assert_eq!(root.error, Some("INTERNAL_ERROR"));
    assert!(root.attributes.contains(&SpanAttribute::Status(Status::Error)));
}

#[tokio::test(start_paused = true)]
async fn each_step_of_an_attestation_has_a_span_and_a_refused_one_is_an_error() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let wanted = AttestationRequest::Wanted;
    let id = world.insert(|session| session.terms.attestation = wanted).await;
    let mut events = running(sample::lease()).to_vec();
    events.extend([
        Event::CollectionStarted,
        Event::DataCollected { collected: Collected::default() },
        Event::AttestationAdvanced { to: AttestationStep::Recorded },
        Event::AttestationAdvanced { to: AttestationStep::Proved },
        Event::AttestationRefused,
    ]);
    advance(&world, &engine, id, events).await;
    let spans = kept.all().into_iter().filter_map(|span| {
        let step = span.attributes.iter().find_map(|attribute| {
            if let SpanAttribute::Attestation(step) = attribute { Some(*step) } else { None }
        });
        step.map(|step| (span.subject, step, span.error))
    });
    let expected = [
        (status(Status::Verifying, 8), AttestationStep::Asked, None),
        (status(Status::Verifying, 9), AttestationStep::Recorded, None),
        (status(Status::Verifying, 10), AttestationStep::Proved, Some("ATTESTATION_FAILED")),
    ];
    assert_eq!(spans.collect::<Vec<_>>(), expected);
    let root = kept.all().into_iter().find(|span| span.subject == SpanSubject::Session);
    assert_eq!(root.unwrap().error, None, "the session has reached its goal in part");
}

#[tokio::test(start_paused = true)]
async fn an_applicant_who_leaves_is_no_error() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let id = world.session().await;
    advance(&world, &engine, id, vec![Event::ApplicantCancelled]).await;
    let spans = kept.all();
    assert_eq!(spans.len(), 2);
    assert!(spans.iter().all(|span| span.error.is_none()), "{spans:?}");
    let code = SpanAttribute::ErrorCode(ErrorCode::ApplicantCancelled);
    assert!(spans.iter().any(|span| span.attributes.contains(&code)));
}

#[tokio::test(start_paused = true)]
async fn a_new_deadline_ends_no_status() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let id = world.session().await;
    advance(&world, &engine, id, running(sample::lease()).to_vec()).await;
    let events = [input_needed(noon()), later(noon()), later(noon()), Event::InputGiven];
    advance(&world, &engine, id, events.to_vec()).await;
    let asked = kept.all().pop().unwrap();
    assert_eq!(asked.subject, status(Status::AwaitingUser, 7));
    assert_eq!(asked.end - asked.start, TimeDelta::seconds(3));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_began_in_another_process_begins_where_the_timeline_says() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let id = world.session().await;
    advance(&world, &world.engine, id, running(sample::lease()).to_vec()).await;
    let events = [input_needed(noon()), later(noon())];
    advance(&world, &world.engine, id, events.to_vec()).await;
    let began = world.clock.now() - TimeDelta::seconds(1);
    advance(&world, &engine, id, vec![Event::TerminatedByPartner]).await;
    while kept.all().len() < 2 {
        tokio::task::yield_now().await;
    }
    let spans = kept.all();
    let asked = spans.iter().find(|span| span.subject != SpanSubject::Session).unwrap();
    assert_eq!((asked.subject.clone(), asked.start), (status(Status::AwaitingUser, 7), began));
    assert_eq!(asked.end, world.clock.now());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_sampled_has_no_spans() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, false);
    let id = world.session().await;
    advance(&world, &engine, id, vec![Event::ApplicantCancelled]).await;
    assert!(engine.traces.nodes(id, world.clock.clone()).is_none());
    engine.traces.attempted(&delivery(), &attempt(WebhookResponse::Failed(FailureCause::Tls)));
    tokio::task::yield_now().await;
    assert_eq!(kept.all(), []);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_at_a_delivery_has_a_span_with_its_host_and_no_more_of_its_url() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let traces = &engine.traces;
    let status = WebhookResponse::Status { code: 503, body: "secret".into(), retry_after: None };
    traces.attempted(&delivery(), &attempt(status));
    traces.attempted(
        &Delivery { attempts: 1, ..delivery() },
        &attempt(WebhookResponse::Failed(FailureCause::Timeout)),
    );
    traces.attempted(
        &Delivery { is_test: true, ..delivery() },
        &attempt(WebhookResponse::Failed(FailureCause::Tls)),
    );
    let spans = kept.all();
    let [first, second] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(first.end - first.start, TimeDelta::seconds(2));
    assert_eq!((first.error, second.error), (None, Some("timeout")));
    assert!(first.attributes.contains(&SpanAttribute::ResponseStatus(503)));
    assert!(first.attributes.contains(&SpanAttribute::Attempt(1)));
    assert!(second.attributes.contains(&SpanAttribute::Attempt(2)));
    assert!(first.attributes.contains(&SpanAttribute::Host("hooks.example".into())));
    assert!(!format!("{spans:?}").contains("secret"), "{spans:?}");
}

#[tokio::test(start_paused = true)]
async fn nodes_follow_each_other_and_the_last_one_ends_with_the_run() {
    let world = World::new().await;
    let (engine, kept) = traced(&world, true);
    let id = world.session().await;
    let nodes = engine.traces.nodes(id, world.clock.clone()).unwrap();
    for node in ["open", "signIn"] {
        nodes.enter(node);
        world.clock.forward(TimeDelta::seconds(4));
    }
    drop(nodes);
    let seen = kept.all().into_iter().map(|span| (span.attributes, span.end - span.start));
    let expected = ["open", "signIn"]
        .map(|node| (vec![SpanAttribute::Node(node.to_owned())], TimeDelta::seconds(4)));
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

fn delivery() -> Delivery {
    let url = "https://user:secret@hooks.example/secret?token=secret";
    sample::delivery(url, std::time::Duration::from_secs(5))
}

fn attempt(answer: WebhookResponse) -> DeliveryAttempt {
    let call = WebhookRequest { sent: "x: secret".into(), answer };
    DeliveryAttempt { at: noon(), took: std::time::Duration::from_secs(2), call }
}
