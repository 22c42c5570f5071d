//! Records the traces of sessions: a span for each status that has ended, for the whole session at its
//! end, and for what happened within it.
//!
//! A span is recorded when it ends, by the process that ends it. Nothing is stored for it: a status begins
//! with the transition before, which this process remembers or finds in the session's timeline.

mod entered;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{
    error_code::ErrorCode,
    id::SessionId,
    notification::{Channel, NotificationFailure},
    session::{AttestationStep, Change, Phase, Session, State, Status, Version},
    workflow::PromptKind,
};
use ports::{
    clock::Clock,
    delivery::{Delivery, DeliveryAttempt},
    notifier::{NotificationClaim, NotificationOutcome},
    session_store::{SessionQueries, TimelineEntry},
    spans::{Span, SpanAttribute, SpanRecorder, SpanSubject, SpanTrace},
    webhook_sender::WebhookResponse,
};
use tokio::sync::Semaphore;
use url::Url;

use self::entered::Entered;

/// How many timelines are read at once. A status whose beginning would have to be read meanwhile gets no
/// span.
const MAX_TIMELINE_READS: usize = 8;

/// Records the traces of sessions, or nothing where the process has no recorder.
#[derive(Clone, Default)]
pub struct SessionTraces(Option<Arc<Recording>>);

struct Recording {
    recorder: Arc<dyn SpanRecorder>,
    timelines: Arc<dyn SessionQueries>,
    entered: Mutex<Entered>,
    reads: Semaphore,
}

/// The start of a browser, which succeeded or failed.
pub(crate) struct BrowserStart {
    pub(crate) at: DateTime<Utc>,
    pub(crate) took: Duration,
    /// Whether no start has failed before in this process.
    pub(crate) is_first: bool,
    /// Why it failed, from a list in the code.
    pub(crate) error: Option<&'static str>,
}

/// An attempt to send a notification, whatever came of it.
pub(crate) struct NotificationAttempt {
    pub(crate) at: DateTime<Utc>,
    pub(crate) took: Duration,
    /// Not known if its session has ended.
    pub(crate) channel: Option<Channel>,
    pub(crate) outcome: NotificationOutcome,
}

impl SessionTraces {
    /// Records with `recorder`; `timelines` tells what other processes did.
    #[must_use]
    pub fn new(recorder: Arc<dyn SpanRecorder>, timelines: Arc<dyn SessionQueries>) -> Self {
        let reads = Semaphore::new(MAX_TIMELINE_READS);
        let entered = Mutex::default();
        Self(Some(Arc::new(Recording { recorder, timelines, entered, reads })))
    }

    /// Records what has ended with a change that was committed.
    pub(crate) fn committed(&self, before: &Session, change: &Change) {
        if before.state.is_closed() {
            return;
        }
        let Some(recording) = self.sampled(before.id) else { return };
        let after = &change.session;
        let since = recording.entered().take(before);
        if is_same(&before.state, &after.state) {
            if let Some((since, at)) = since {
                recording.entered().insert(after, since, at);
            }
            return;
        }
        if after.state.is_closed() {
            recording.recorder.record(session_span(after, change.at));
        } else {
            recording.entered().insert(after, after.version, change.at);
        }
        let status = EndedStatus::of(before, change);
        match since {
            Some((since, at)) => recording.recorder.record(status.span(since, at)),
            None => recording.clone().read_beginning(status, before),
        }
    }

    /// Records the start of a browser and, before the first one of an attempt, the wait for it. A wait has a
    /// span where this process has requested the browser, or where it was moved here.
    pub(crate) fn browser_started(&self, session: &Session, browser: &BrowserStart) {
        let Some(recording) = self.sampled(session.id) else { return };
        let span = |subject, start, end, error| Span {
            trace: SpanTrace::Session(session.id),
            subject,
            start,
            end,
            error,
            attributes: vec![SpanAttribute::Attempt(session.state.attempts().into())],
            cause: None,
        };
        let requested = recording.entered().find(session).map(|(_, since)| since);
        let waited = session.state.waiting_since().or(requested).filter(|_| browser.is_first);
        if let Some(since) = waited {
            recording.recorder.record(span(SpanSubject::BrowserQueue, since, browser.at, None));
        }
        let end = browser.at + delta(browser.took);
        let start = span(SpanSubject::BrowserStart, browser.at, end, browser.error);
        recording.recorder.record(start);
    }

    /// Records an attempt at a delivery. Tests of a webhook belong to no session.
    pub(crate) fn attempted(&self, delivery: &Delivery, attempt: &DeliveryAttempt) {
        if delivery.is_test {
            return;
        }
        let Some(recording) = self.sampled(delivery.session) else { return };
        let mut attributes = vec![
            SpanAttribute::Delivery(delivery.id),
            SpanAttribute::Webhook(delivery.webhook.id),
            SpanAttribute::Attempt(delivery.attempts.saturating_add(1)),
        ];
        let url = Url::parse(&delivery.webhook.url).ok();
        let host = url.as_ref().and_then(Url::host_str);
        attributes.extend(host.map(|host| SpanAttribute::Host(host.to_owned())));
        let error = match attempt.call.answer {
            WebhookResponse::Status { code, .. } => {
                attributes.push(SpanAttribute::ResponseStatus(code));
                None
            }
            WebhookResponse::Failed(cause) => Some(cause.as_str()),
        };
        recording.recorder.record(Span {
            trace: SpanTrace::Session(delivery.session),
            subject: SpanSubject::WebhookAttempt,
            start: attempt.at,
            end: attempt.at + delta(attempt.took),
            error,
            attributes,
            cause: None,
        });
    }

    /// Records an attempt to send a notification.
    pub(crate) fn notified(&self, claim: &NotificationClaim, attempt: &NotificationAttempt) {
        let Some(recording) = self.sampled(claim.session) else { return };
        let mut attributes = vec![
            SpanAttribute::Notification(claim.id),
            SpanAttribute::Attempt(claim.attempt.unsigned_abs()),
        ];
        attributes.extend(attempt.channel.map(SpanAttribute::Channel));
        let error = match attempt.outcome {
            NotificationOutcome::Sent { .. } => None,
            NotificationOutcome::RetryAt(_) => Some(NotificationFailure::Unreachable),
            NotificationOutcome::Failed { why, .. } => Some(why),
        };
        recording.recorder.record(Span {
            trace: SpanTrace::Session(claim.session),
            subject: SpanSubject::NotificationAttempt,
            start: attempt.at,
            end: attempt.at + delta(attempt.took),
            error: error.map(NotificationFailure::as_str),
            attributes,
            cause: None,
        });
    }

    /// Returns what records the nodes of a run; `None` if the session is not recorded.
    pub(crate) fn nodes(&self, session: SessionId, clock: Arc<dyn Clock>) -> Option<NodeSpans> {
        let recorder = self.sampled(session)?.recorder.clone();
        Some(NodeSpans { recorder, clock, session, current: Mutex::default() })
    }

    fn sampled(&self, session: SessionId) -> Option<&Arc<Recording>> {
        self.0.as_ref().filter(|recording| recording.recorder.is_sampled(session))
    }
}

impl Recording {
    fn entered(&self) -> MutexGuard<'_, Entered> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a status whose beginning another process has committed.
    fn read_beginning(self: Arc<Self>, status: EndedStatus, before: &Session) {
        let (owner, version) = (before.owner, before.version);
        tokio::spawn(async move {
            let Ok(_permit) = self.reads.try_acquire() else { return };
            let timeline = match self.timelines.timeline(owner, status.session).await {
                Ok(timeline) => timeline.unwrap_or_default(),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(session.id = %status.session, error, "failed to read when a session got its status; the span is left out");
                    return;
                }
            };
            if let Some((since, at)) = beginning(&timeline, version) {
                self.recorder.record(status.span(since, at));
            }
        });
    }
}

/// Records the nodes of one run, one after the other; the last one when it is dropped.
pub(crate) struct NodeSpans {
    recorder: Arc<dyn SpanRecorder>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    current: Mutex<Option<(String, DateTime<Utc>)>>,
}

impl NodeSpans {
    pub(crate) fn enter(&self, node: &str) {
        self.next(Some(node));
    }

    fn next(&self, node: Option<&str>) {
        let now = self.clock.now();
        let next = node.map(|node| (node.to_owned(), now));
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::replace(&mut *current, next);
        if let Some((node, start)) = ended {
            self.recorder.record(Span {
                trace: SpanTrace::Session(self.session),
                subject: SpanSubject::Node,
                start,
                end: now,
                error: None,
                attributes: vec![SpanAttribute::Node(node)],
                cause: None,
            });
        }
    }
}

impl Drop for NodeSpans {
    fn drop(&mut self) {
        self.next(None);
    }
}

/// A status that has ended.
struct EndedStatus {
    session: SessionId,
    status: Status,
    end: DateTime<Utc>,
    error: Option<ErrorCode>,
    attributes: Vec<SpanAttribute>,
}

impl EndedStatus {
    fn of(before: &Session, change: &Change) -> Self {
        let state = &before.state;
        let mut attributes = vec![
            SpanAttribute::Event(change.event),
            SpanAttribute::Attempt(state.attempts().into()),
        ];
        attributes.extend(prompt(state).map(SpanAttribute::Prompt));
        attributes.extend(attestation_step(state).map(SpanAttribute::Attestation));
        attributes.extend(change.node.clone().map(SpanAttribute::Node));
        let after = &change.session.state;
        // An applicant who declines, and data that is not complete, are no failures of the status.
        let has_failed = after.status() == Status::Error
            || after.offered_retry().is_some()
            || change.event == "AttestationRefused";
        Self {
            session: before.id,
            status: before.status(),
            end: change.at,
            error: after.error_code().filter(|_| has_failed),
            attributes,
        }
    }

    fn span(self, since: Version, start: DateTime<Utc>) -> Span {
        Span {
            trace: SpanTrace::Session(self.session),
            subject: SpanSubject::Status { status: self.status, since },
            start,
            end: self.end,
            error: self.error.map(ErrorCode::as_str),
            attributes: self.attributes,
            cause: None,
        }
    }
}

/// The span of a whole session that has closed.
fn session_span(session: &Session, end: DateTime<Utc>) -> Span {
    let error = session.state.error_code();
    let is_failed = session.status() == Status::Error;
    let mut attributes = vec![
        SpanAttribute::Status(session.status()),
        SpanAttribute::Platform(session.terms.platform),
        SpanAttribute::Environment(session.terms.environment),
        SpanAttribute::Attempt(session.state.attempts().into()),
    ];
    attributes.extend(error.map(SpanAttribute::ErrorCode));
    Span {
        trace: SpanTrace::Session(session.id),
        subject: SpanSubject::Session,
        start: session.created_at,
        end,
        // An applicant who declines, and a partner who terminates, are no failures of the session.
        error: error.filter(|_| is_failed).map(ErrorCode::as_str),
        attributes,
        cause: None,
    }
}

/// Returns whether a transition changed a time limit or the instance alone.
fn is_same(before: &State, after: &State) -> bool {
    let key = |state: &State| (state.status(), prompt(state), attestation_step(state));
    key(before) == key(after) && before.offered_retry().is_some() == after.offered_retry().is_some()
}

fn prompt(state: &State) -> Option<PromptKind> {
    state.ask().map(|ask| ask.kind)
}

const fn attestation_step(state: &State) -> Option<AttestationStep> {
    match state {
        State::Live { phase: Phase::Verifying { step, .. }, .. } => Some(*step),
        State::Live { .. }
        | State::Created { .. }
        | State::Initializing { .. }
        | State::Failed { .. }
        | State::Closed { .. } => None,
    }
}

/// Finds when the status began that a session had with `version`, and with which version. The timeline has
/// one entry for each version, beside those of links and devices.
fn beginning(timeline: &[TimelineEntry], version: Version) -> Option<(Version, DateTime<Utc>)> {
    let transitions = timeline.iter().filter(|entry| is_transition(entry));
    let count = usize::try_from(version.0).ok()?;
    let transitions: Vec<_> = transitions.take(count).collect();
    if transitions.len() < count {
        return None;
    }
    let first = transitions.iter().rposition(|entry| !keeps_the_status(&entry.event))?;
    let entry = transitions.get(first)?;
    let since = i32::try_from(first).ok()?.checked_add(1)?;
    Some((Version(since), entry.at))
}

fn is_transition(entry: &TimelineEntry) -> bool {
    entry.event == "SessionCreated" || domain::session::Event::NAMES.contains(&&*entry.event)
}

fn keeps_the_status(event: &str) -> bool {
    ["DeadlineChanged", "TimeSkipped", "WaitMoved"].contains(&event)
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or_default()
}

#[cfg(test)]
mod tests;
