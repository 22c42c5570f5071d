//! Spans as messages of OTLP, with the names of OpenTelemetry's semantic conventions where there is one.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use domain::{id::SessionId, session::AttestationStep};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{
        Span as Message, Status,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};
use ports::spans::{Span, SpanAttribute, SpanSubject, SpanTrace};

use crate::ids::{SpanId, TraceId, root_of, trace_of};

/// The maximum length of a text, in characters.
const MAX_TEXT_CHARS: usize = 255;
/// The flags of a span: its trace is sampled, and whether its parent is of another process is not known.
const SAMPLED: u32 = 0x01;
/// The flags of a link: whether it leads to another process is known.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// A span with its identifiers.
pub(crate) struct IdentifiedSpan {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) span: Span,
}

/// Returns an attribute with a text, which is cut where it is too long.
pub(crate) fn text(name: &str, value: &str) -> KeyValue {
    let value = value.chars().take(MAX_TEXT_CHARS).collect();
    attribute(name, Value::StringValue(value))
}

fn number(name: &str, value: i64) -> KeyValue {
    attribute(name, Value::IntValue(value))
}

fn attribute(name: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

impl From<IdentifiedSpan> for Message {
    fn from(identified: IdentifiedSpan) -> Self {
        let IdentifiedSpan { trace, id, parent, span } = identified;
        let error = error(&span);
        let mut attributes = vec![];
        if let SpanTrace::Session(session) = span.trace {
            attributes.push(session_attribute(session));
        }
        attributes.extend(request(&span.subject));
        for attribute in &span.attributes {
            attributes.extend(attribute_of(&span.subject, attribute));
        }
        attributes.extend(error.as_ref().map(|error| text("error.type", error)));
        Self {
            trace_id: trace.to_vec(),
            span_id: id.to_vec(),
            parent_span_id: parent.map(|id| id.to_vec()).unwrap_or_default(),
            flags: SAMPLED,
            name: name(&span.subject).into_owned(),
            kind: kind(&span.subject).into(),
            start_time_unix_nano: nanoseconds(span.start),
            end_time_unix_nano: nanoseconds(span.end.max(span.start)),
            attributes,
            links: links(&span),
            status: error.map(|_| Status { code: StatusCode::Error.into(), ..Status::default() }),
            ..Self::default()
        }
    }
}

fn name(subject: &SpanSubject) -> Cow<'static, str> {
    match subject {
        SpanSubject::Session => "session".into(),
        SpanSubject::Status { status, .. } => {
            format!("session.{}", status.as_str().to_ascii_lowercase()).into()
        }
        SpanSubject::Node => "workflow.node".into(),
        SpanSubject::BrowserQueue => "browser.queue".into(),
        SpanSubject::BrowserStart => "browser.start".into(),
        SpanSubject::WebhookAttempt => "webhook.attempt".into(),
        SpanSubject::NotificationAttempt => "notification.attempt".into(),
        SpanSubject::Request { method, route: Some(route) } => format!("{method} {route}").into(),
        SpanSubject::Request { method, route: None } => (*method).into(),
    }
}

const fn kind(subject: &SpanSubject) -> SpanKind {
    match subject {
        SpanSubject::Session
        | SpanSubject::Status { .. }
        | SpanSubject::Node
        | SpanSubject::BrowserQueue
        | SpanSubject::BrowserStart => SpanKind::Internal,
        SpanSubject::WebhookAttempt | SpanSubject::NotificationAttempt => SpanKind::Client,
        SpanSubject::Request { .. } => SpanKind::Server,
    }
}

/// Returns the attributes of an HTTP request.
fn request(subject: &SpanSubject) -> Vec<KeyValue> {
    match subject {
        SpanSubject::WebhookAttempt => vec![text("http.request.method", "POST")],
        SpanSubject::Request { method, route } => {
            let route = route.as_ref().map(|route| text("http.route", route));
            std::iter::once(text("http.request.method", method)).chain(route).collect()
        }
        SpanSubject::Session
        | SpanSubject::Status { .. }
        | SpanSubject::Node
        | SpanSubject::BrowserQueue
        | SpanSubject::BrowserStart
        | SpanSubject::NotificationAttempt => vec![],
    }
}

fn attribute_of(subject: &SpanSubject, attribute: &SpanAttribute) -> Vec<KeyValue> {
    let only = match attribute {
        SpanAttribute::Session(session) => session_attribute(*session),
        SpanAttribute::Status(status) => text("avouch.session.status", status.as_str()),
        SpanAttribute::Event(event) => text("avouch.session.event", event),
        SpanAttribute::ErrorCode(code) => text("avouch.error_code", code.as_str()),
        SpanAttribute::Platform(platform) => number("avouch.platform.id", platform.0.into()),
        SpanAttribute::Environment(environment) => text("avouch.environment", environment.as_str()),
        SpanAttribute::Attempt(attempt) => {
            let own = number("avouch.attempt", (*attempt).into());
            if *subject == SpanSubject::WebhookAttempt && *attempt > 1 {
                let again = i64::from(*attempt) - 1;
                return vec![own, number("http.request.resend_count", again)];
            }
            own
        }
        SpanAttribute::Prompt(prompt) => text("avouch.prompt.kind", prompt.as_str()),
        SpanAttribute::Attestation(step) => text("avouch.attestation.step", step_name(*step)),
        SpanAttribute::Node(node) => text("avouch.workflow.node", node),
        SpanAttribute::ResponseStatus(code) => number("http.response.status_code", (*code).into()),
        SpanAttribute::Host(host) => text("server.address", host),
        SpanAttribute::Delivery(id) => text("avouch.delivery.id", &id.to_string()),
        SpanAttribute::Webhook(id) => text("avouch.webhook.id", &id.to_string()),
        SpanAttribute::Notification(id) => text("avouch.notification.id", &id.to_string()),
        SpanAttribute::Channel(channel) => text("avouch.notification.channel", channel.name()),
    };
    vec![only]
}

fn session_attribute(session: SessionId) -> KeyValue {
    text("avouch.session.id", &session.to_string())
}

/// Returns what is done in the time of a step.
const fn step_name(step: AttestationStep) -> &'static str {
    match step {
        AttestationStep::Asked => "record",
        AttestationStep::Recorded => "prove",
        AttestationStep::Proved => "verify",
    }
}

/// Returns why a span did not succeed. A status is an error to a server from 500 on; an endpoint has to
/// answer with 2xx.
fn error(span: &Span) -> Option<Cow<'static, str>> {
    let code = span.attributes.iter().find_map(|attribute| {
        if let SpanAttribute::ResponseStatus(code) = attribute { Some(*code) } else { None }
    });
    let code = code.filter(|code| match &span.subject {
        SpanSubject::Request { .. } => *code >= 500,
        SpanSubject::WebhookAttempt => !(200..300).contains(code),
        SpanSubject::Session
        | SpanSubject::Status { .. }
        | SpanSubject::Node
        | SpanSubject::BrowserQueue
        | SpanSubject::BrowserStart
        | SpanSubject::NotificationAttempt => false,
    });
    span.error.map(Cow::Borrowed).or_else(|| code.map(|code| code.to_string().into()))
}

fn links(span: &Span) -> Vec<Link> {
    let cause = span.cause.map(|cause| Link {
        trace_id: cause.trace.to_vec(),
        span_id: cause.span.to_vec(),
        flags: HAS_IS_REMOTE | IS_REMOTE,
        ..Link::default()
    });
    let sessions = span.attributes.iter().filter_map(|attribute| {
        let SpanAttribute::Session(session) = attribute else { return None };
        Some(Link {
            trace_id: trace_of(*session).to_vec(),
            span_id: root_of(*session).to_vec(),
            ..Link::default()
        })
    });
    cause.into_iter().chain(sessions).collect()
}

fn nanoseconds(time: DateTime<Utc>) -> u64 {
    time.timestamp_nanos_opt().and_then(|time| u64::try_from(time).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
