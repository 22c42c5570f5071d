//! Names, kinds, attributes and links of each kind of span.

use domain::{
    api_key::Environment,
    error_code::ErrorCode,
    id::{DeliveryId, NotificationId, PlatformId, WebhookId},
    notification::Channel,
    session::{Status, Version},
    workflow::PromptKind,
};
use ports::spans::{OwnTrace, RemoteSpan};
use testkit::sample::noon;
use uuid::Uuid;

use super::*;

fn session() -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(1))
}

fn span(subject: SpanSubject, attributes: Vec<SpanAttribute>) -> Span {
    let trace = SpanTrace::Session(session());
    let (start, end) = (noon(), noon() + chrono::TimeDelta::milliseconds(1500));
    Span { trace, subject, start, end, error: None, attributes, cause: None }
}

fn encoded(span: Span) -> Message {
    IdentifiedSpan { trace: [1; 16], id: [2; 8], parent: Some([3; 8]), span }.into()
}

/// Returns the attributes as `name=value`.
fn attributes(message: &Message) -> Vec<String> {
    let attributes = message.attributes.iter().map(|attribute| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        match value {
            Some(Value::StringValue(text)) => format!("{}={text}", attribute.key),
            Some(Value::IntValue(number)) => format!("{}={number}", attribute.key),
            _ => panic!("{attribute:?}"),
        }
    });
    attributes.collect()
}

const ID: &str = "avouch.session.id=00000000-0000-0000-0000-000000000001";

#[test]
fn a_span_has_its_identifiers_and_times() {
    let message = encoded(span(SpanSubject::Session, vec![]));
    assert_eq!((message.trace_id, message.span_id), (vec![1; 16], vec![2; 8]));
    assert_eq!((message.parent_span_id, message.flags), (vec![3; 8], 1));
    assert_eq!(message.end_time_unix_nano - message.start_time_unix_nano, 1_500_000_000);
    let start = u64::try_from(noon().timestamp_micros()).unwrap() * 1000;
    assert_eq!(message.start_time_unix_nano, start);
    let mut backwards = span(SpanSubject::Session, vec![]);
    backwards.end = noon() - chrono::TimeDelta::seconds(1);
    assert_eq!(encoded(backwards).end_time_unix_nano, start, "no span ends before it begins");
}

#[test]
fn every_attribute_has_its_name() {
    let message = encoded(span(
        SpanSubject::Session,
        vec![
            SpanAttribute::Status(Status::PartialComplete),
            SpanAttribute::Event("DataCollected"),
            SpanAttribute::ErrorCode(ErrorCode::DataIncomplete),
            SpanAttribute::Platform(PlatformId(7)),
            SpanAttribute::Environment(Environment::Development),
            SpanAttribute::Attempt(2),
            SpanAttribute::Prompt(PromptKind::SecurityQuestion),
            SpanAttribute::Attestation(AttestationStep::Recorded),
            SpanAttribute::Node("signIn".into()),
            SpanAttribute::Host("hooks.example".into()),
            SpanAttribute::Delivery(DeliveryId::from_uuid(Uuid::from_u128(2))),
            SpanAttribute::Webhook(WebhookId::from_uuid(Uuid::from_u128(3))),
            SpanAttribute::Notification(NotificationId::from_uuid(Uuid::from_u128(4))),
            SpanAttribute::Channel(Channel::Whatsapp),
        ],
    ));
    let expected = [
        ID,
        "avouch.session.status=PARTIAL_COMPLETE",
        "avouch.session.event=DataCollected",
        "avouch.error_code=DATA_INCOMPLETE",
        "avouch.platform.id=7",
        "avouch.environment=development",
        "avouch.attempt=2",
        "avouch.prompt.kind=security_question",
        "avouch.attestation.step=prove",
        "avouch.workflow.node=signIn",
        "server.address=hooks.example",
        "avouch.delivery.id=00000000-0000-0000-0000-000000000002",
        "avouch.webhook.id=00000000-0000-0000-0000-000000000003",
        "avouch.notification.id=00000000-0000-0000-0000-000000000004",
        "avouch.notification.channel=whatsapp",
    ];
    assert_eq!(attributes(&message), expected);
    assert_eq!((message.name.as_str(), message.kind()), ("session", SpanKind::Internal));
    assert!(message.status.is_none() && message.links.is_empty());
}

#[test]
fn a_text_is_bounded() {
    let node = SpanAttribute::Node("ä".repeat(10_000));
    let message = encoded(span(SpanSubject::Node, vec![node]));
    let [_, node] = &attributes(&message)[..] else { panic!("{message:?}") };
    assert_eq!(node.chars().count(), "avouch.workflow.node=".len() + MAX_TEXT_CHARS);
}

#[test]
fn names_and_kinds_are_few() {
    let since = Version(3);
    for (subject, name, kind) in [
        (
            SpanSubject::Status { status: Status::CollectingData, since },
            "session.collecting_data",
            SpanKind::Internal,
        ),
        (SpanSubject::Node, "workflow.node", SpanKind::Internal),
        (SpanSubject::BrowserQueue, "browser.queue", SpanKind::Internal),
        (SpanSubject::BrowserStart, "browser.start", SpanKind::Internal),
        (SpanSubject::WebhookAttempt, "webhook.attempt", SpanKind::Client),
        (SpanSubject::NotificationAttempt, "notification.attempt", SpanKind::Client),
        (SpanSubject::Request { method: "GET", route: None }, "GET", SpanKind::Server),
    ] {
        let message = encoded(span(subject, vec![]));
        assert_eq!((message.name.as_str(), message.kind()), (name, kind));
    }
}

#[test]
fn an_attempt_fails_with_any_status_but_2xx() {
    let attempt = |code, number| {
        let attributes = vec![SpanAttribute::Attempt(number), SpanAttribute::ResponseStatus(code)];
        encoded(span(SpanSubject::WebhookAttempt, attributes))
    };
    let delivered = attempt(204, 1);
    let expected =
        [ID, "http.request.method=POST", "avouch.attempt=1", "http.response.status_code=204"];
    assert_eq!(attributes(&delivered), expected);
    assert!(delivered.status.is_none());
    let refused = attempt(302, 3);
    let expected = [
        ID,
        "http.request.method=POST",
        "avouch.attempt=3",
        "http.request.resend_count=2",
        "http.response.status_code=302",
        "error.type=302",
    ];
    assert_eq!(attributes(&refused), expected);
    assert_eq!(refused.status.unwrap().code(), StatusCode::Error);
    let mut failed = span(SpanSubject::WebhookAttempt, vec![]);
    failed.error = Some("timeout");
    assert_eq!(attributes(&encoded(failed))[2], "error.type=timeout");
}

#[test]
fn a_request_is_linked_to_what_caused_it_and_to_the_session_that_it_names() {
    let request = |status| {
        let route = "/v1/partner/browser-session/{id}".to_owned();
        let mut span = span(
            SpanSubject::Request { method: "GET", route: Some(route) },
            vec![SpanAttribute::ResponseStatus(status), SpanAttribute::Session(session())],
        );
        span.trace = SpanTrace::Own(OwnTrace([1; 16]));
        span.cause = Some(RemoteSpan { trace: [8; 16], span: [9; 8] });
        encoded(span)
    };
    let message = request(404);
    assert_eq!(message.name, "GET /v1/partner/browser-session/{id}");
    assert_eq!(message.kind(), SpanKind::Server);
    let expected = [
        "http.request.method=GET",
        "http.route=/v1/partner/browser-session/{id}",
        "http.response.status_code=404",
        ID,
    ];
    assert_eq!(attributes(&message), expected);
    assert!(message.status.is_none(), "what a caller did wrong is no error of the server");
    let [cause, session_link] = &message.links[..] else { panic!("{message:?}") };
    assert_eq!((&cause.trace_id, &cause.span_id), (&vec![8; 16], &vec![9; 8]));
    assert_eq!(session_link.trace_id, trace_of(session()));
    assert_eq!(session_link.span_id, root_of(session()));
    assert_eq!(attributes(&request(503)).last().unwrap(), "error.type=503");
}
