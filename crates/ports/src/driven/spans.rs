//! Where the spans of distributed traces go: what happened, and from when to when.
//!
//! **Invariant:** a span carries nothing that an applicant has typed or that was read from their account,
//! no contact, no key, and of a URL no more than its host. There is no attribute for free text.

use std::fmt;

use chrono::{DateTime, Utc};
use domain::{
    api_key::Environment,
    error_code::ErrorCode,
    id::{DeliveryId, NotificationId, PlatformId, SessionId, WebhookId},
    notification::Channel,
    session::{AttestationStep, Status, Version},
    workflow::PromptKind,
};

/// Takes spans once they have ended.
///
/// All spans of a session are one trace. Its identifier follows from that of the session, so every
/// process that works on the session adds to the same trace without asking another one.
pub trait SpanRecorder: Send + Sync {
    /// Returns whether the spans of a session are recorded. Processes with the same settings give the
    /// same answer.
    fn is_sampled(&self, session: SessionId) -> bool;

    /// Returns the identifier of a new trace of one span; `None` if the span would not be
    /// recorded.
    fn new_trace(&self) -> Option<OwnTrace>;

    /// Takes a span without waiting for anything. It may be lost, which is counted: nothing else may
    /// depend on it.
    fn record(&self, span: Span);
}

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: SpanTrace,
    pub subject: SpanSubject,
    pub start: DateTime<Utc>,
    pub end: DateTime<Utc>,
    /// Why it did not succeed, from a list in the code.
    pub error: Option<&'static str>,
    pub attributes: Vec<SpanAttribute>,
    /// The span of another system that caused this one. It decides nothing here.
    pub cause: Option<RemoteSpan>,
}

/// The trace that a span belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanTrace {
    Session(SessionId),
    /// A trace of this span alone.
    Own(OwnTrace),
}

/// The identifier of a trace that has one span and belongs to no session. Not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTrace(pub [u8; 16]);

/// Writes 32 lower-case hexadecimal digits, as collectors do.
impl fmt::Display for OwnTrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// What a span is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanSubject {
    /// A session, from its creation to its end: the root of its trace. All other spans of the trace
    /// are its children.
    Session,
    /// The time that a session had a status, and the version with which it got it.
    Status { status: Status, since: Version },
    /// A node of the workflow.
    Node,
    /// The wait for a browser.
    BrowserQueue,
    /// The start of a browser for a session.
    BrowserStart,
    /// One POST request to a webhook endpoint.
    WebhookAttempt,
    /// One attempt to send the applicant their link.
    NotificationAttempt,
    /// A request of a partner: the method, and the path with placeholders instead of values, if it is
    /// one of the interface.
    Request { method: &'static str, route: Option<String> },
}

/// A detail of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanAttribute {
    /// The session that a span outside of its trace is about.
    Session(SessionId),
    Status(Status),
    /// The event that ended a status, by its name.
    Event(&'static str),
    ErrorCode(ErrorCode),
    Platform(PlatformId),
    Environment(Environment),
    /// The number of an attempt, from 1; of a session, how many there were.
    Attempt(u32),
    Prompt(PromptKind),
    Attestation(AttestationStep),
    /// The identifier of a node, as the author of the definition chose it.
    Node(String),
    ResponseStatus(u16),
    /// The host of a URL, without its path, query and credentials.
    Host(String),
    Delivery(DeliveryId),
    Webhook(WebhookId),
    Notification(NotificationId),
    Channel(Channel),
}

/// A span of another system, as it names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteSpan {
    /// Not zero.
    pub trace: [u8; 16],
    /// Not zero.
    pub span: [u8; 8],
}
