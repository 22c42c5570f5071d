//! The trace that an event belongs to, at the end of its line: `trace_id`, as other programs of
//! OpenTelemetry name it.

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    Layer,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    layer::Context,
    registry::LookupSpan,
};

/// The field of events and spans about a session.
const SESSION: &str = "session.id";
/// The field of a request's span with the trace of that request, as hexadecimal digits.
const REQUEST_TRACE: &str = "request.trace";

type OfSession = dyn Fn(&str) -> Option<u128> + Send + Sync;

/// Finds the traces of events. An event belongs to the trace of the session that it names; if it
/// names none, to that of the innermost span that names a session or the trace of a request.
///
/// As a layer it keeps the traces of spans. What [`text`](Self::text) and [`json`](Self::json)
/// return writes those of events, and needs the layer beside it.
#[derive(Clone)]
pub struct TraceIds {
    of_session: Arc<OfSession>,
}

impl TraceIds {
    /// `of_session` returns the trace of the session with an identifier, if it has one.
    #[must_use]
    pub fn new(of_session: impl Fn(&str) -> Option<u128> + Send + Sync + 'static) -> Self {
        Self { of_session: Arc::new(of_session) }
    }

    /// Writes the traces of events at the end of lines of text. Only `format` itself says whether
    /// there are colours.
    #[must_use]
    pub fn text<F>(&self, format: F) -> WithTraceId<F> {
        WithTraceId { ids: self.clone(), format, end: LineEnd::Text }
    }

    /// Writes the traces of events as the last member of JSON objects.
    #[must_use]
    pub fn json<F>(&self, format: F) -> WithTraceId<F> {
        WithTraceId { ids: self.clone(), format, end: LineEnd::Json }
    }

    /// Returns what the fields that `record` visits say about the trace.
    fn find(&self, record: impl FnOnce(&mut dyn Visit)) -> Option<FoundTrace> {
        let mut search = TraceSearch { ids: self, found: None };
        record(&mut search);
        search.found
    }

    fn of_event<S, N>(&self, context: &FmtContext<'_, S, N>, event: &Event<'_>) -> Option<u128>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        N: for<'a> FormatFields<'a> + 'static,
    {
        if let Some(FoundTrace(trace)) = self.find(|fields| event.record(fields)) {
            return trace;
        }
        let mut spans = context.event_scope()?;
        let found = spans.find_map(|span| span.extensions().get::<FoundTrace>().copied());
        found?.0
    }

    /// Keeps the trace of a span. The one that was found last counts.
    fn keep<S>(found: Option<FoundTrace>, id: &Id, context: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        if let Some(found) = found
            && let Some(span) = context.span(id)
        {
            span.extensions_mut().replace(found);
        }
    }
}

impl<S> Layer<S> for TraceIds
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        Self::keep(self.find(|fields| attributes.record(fields)), id, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        Self::keep(self.find(|fields| values.record(fields)), id, &context);
    }
}

/// The trace of an event or a span that names its session or its request; `None` if what it names
/// has no trace.
#[derive(Clone, Copy)]
struct FoundTrace(Option<u128>);

struct TraceSearch<'a> {
    ids: &'a TraceIds,
    found: Option<FoundTrace>,
}

impl Visit for TraceSearch<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            SESSION => self.found = Some(FoundTrace((self.ids.of_session)(value))),
            REQUEST_TRACE => self.found = Some(FoundTrace(u128::from_str_radix(value, 16).ok())),
            _ => (),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if [SESSION, REQUEST_TRACE].contains(&field.name()) {
            self.record_str(field, &format!("{value:?}"));
        }
    }
}

/// Writes events in the form of `F`, with their traces.
pub struct WithTraceId<F> {
    ids: TraceIds,
    format: F,
    end: LineEnd,
}

#[derive(Clone, Copy)]
enum LineEnd {
    Text,
    Json,
}

impl<S, N, F> FormatEvent<S, N> for WithTraceId<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Some(trace) = self.ids.of_event(context, event) else {
            return self.format.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        match self.end {
            LineEnd::Text => {
                let line = line.strip_suffix('\n').unwrap_or(&line);
                writeln!(writer, "{line} trace_id={trace:032x}")
            }
            LineEnd::Json => {
                let members = line.strip_suffix("}\n").unwrap_or(&line);
                writeln!(writer, "{members},\"trace_id\":\"{trace:032x}\"}}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::field::{Empty, display};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::{LineWriter, tests::Buffer};

    const SAMPLED: &str = "01990000-0000-7000-8000-000000000001";
    const NOT_SAMPLED: &str = "01990000-0000-7000-8000-000000000002";
    const TRACE: &str = "01990000000070008000000000000001";
    const REQUEST: &str = "0000000000000000000000000000000b";

    fn ids() -> TraceIds {
        let trace = u128::from_str_radix(TRACE, 16).ok();
        TraceIds::new(move |session| trace.filter(|_| session == SAMPLED))
    }

    /// Returns the lines of text that `act` logs.
    fn text(colours: bool, act: impl FnOnce()) -> Vec<String> {
        let (ids, buffer) = (ids(), Buffer::default());
        let writer = buffer.clone();
        let log = tracing_subscriber::fmt()
            .with_ansi(colours)
            .with_writer(move || LineWriter::new(writer.clone(), colours))
            .map_event_format(|format| ids.text(format.with_ansi(colours)))
            .finish();
        tracing::subscriber::with_default(log.with(ids), act);
        buffer.lines()
    }

    fn json(act: impl FnOnce()) -> Vec<String> {
        let (ids, buffer) = (ids(), Buffer::default());
        let writer = buffer.clone();
        let log = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .json()
            .map_event_format(|format| ids.json(format))
            .finish();
        tracing::subscriber::with_default(log.with(ids), act);
        buffer.lines()
    }

    fn events() {
        tracing::info!(session.id = %SAMPLED, other = 1, "with a trace }}\n");
        tracing::info!(session.id = SAMPLED, "as a text");
        tracing::info!(session.id = %NOT_SAMPLED, "without a trace");
        tracing::info!(other = SAMPLED, "of no session");
    }

    #[test]
    fn the_line_of_a_session_ends_with_its_trace() {
        let lines = text(false, events);
        let [sampled, as_text, not_sampled, other] = &lines[..] else { panic!("{lines:#?}") };
        for line in [sampled, as_text] {
            assert!(line.ends_with(&format!(" trace_id={TRACE}")), "{line}");
            assert_eq!(line.matches("trace_id=").count(), 1, "{line}");
        }
        assert!(as_text.contains("as a text session.id="), "{as_text}");
        for line in [not_sampled, other] {
            assert!(!line.contains("trace_id="), "{line}");
        }
    }

    #[test]
    fn the_object_of_a_session_has_its_trace_as_a_member() {
        let lines = json(events);
        let [sampled, as_text, not_sampled, other] = &lines[..] else { panic!("{lines:#?}") };
        for line in [sampled, as_text] {
            assert!(line.starts_with(r#"{"timestamp":"#), "{line}");
            let end = format!(r#""target":"log_format::trace_ids::tests","trace_id":"{TRACE}"}}"#);
            assert!(line.ends_with(&end), "{line}");
        }
        for line in [not_sampled, other] {
            assert!(line.ends_with('}') && !line.contains("\"trace_id\""), "{line}");
        }
    }

    /// An event without a session, one of another session, and one after the request's span has its
    /// session.
    fn request() {
        let span = tracing::info_span!(
            "request",
            request.id = "one",
            request.trace = Empty,
            session.id = Empty
        );
        let _inside = span.enter();
        tracing::info!("before it is admitted");
        span.record("request.trace", display(REQUEST));
        tracing::info_span!("inner").in_scope(|| tracing::info!("within"));
        tracing::info!(session.id = %SAMPLED, "about a session");
        tracing::info!(session.id = %NOT_SAMPLED, "about another one");
        span.record("session.id", display(SAMPLED));
        tracing::info!("after it has created a session");
        span.record("session.id", display(NOT_SAMPLED));
        tracing::info!("after it has created another one");
    }

    #[test]
    fn a_line_within_a_span_has_the_trace_of_the_span_unless_it_is_about_a_session() {
        let expected = [None, Some(REQUEST), Some(TRACE), None, Some(TRACE), None];
        for (lines, before, after) in
            [(text(false, request), " trace_id=", ""), (json(request), ",\"trace_id\":\"", "\"}")]
        {
            assert_eq!(lines.len(), expected.len(), "{lines:#?}");
            for (line, trace) in lines.iter().zip(expected) {
                match trace {
                    Some(trace) => assert!(line.ends_with(&format!("{before}{trace}{after}"))),
                    None => assert!(!line.contains(before), "{line}"),
                }
            }
        }
    }

    #[test]
    fn colours_are_preserved() {
        let lines = text(true, || tracing::info!(session.id = %SAMPLED, "in colours"));
        assert!(lines[0].contains("\u{1b}[32m INFO"), "{lines:?}");
        assert!(lines[0].ends_with(&format!(" trace_id={TRACE}")), "{lines:?}");
    }
}
