//! Spans of partners' requests. A `traceparent` (W3C Trace Context) is linked to, and trusted for nothing.

use std::sync::Arc;

use actix_web::{
    HttpMessage as _, HttpRequest,
    http::{StatusCode, header::HeaderMap},
};
use chrono::{DateTime, Utc};
use domain::id::SessionId;
use ports::{
    clock::Clock,
    spans::{OwnTrace, RemoteSpan, Span, SpanAttribute, SpanRecorder, SpanSubject, SpanTrace},
};
use tracing::field::display;

use super::measure::{NO_ROUTE, method, route};

/// The paths of the partner API.
const PREFIX: &str = "/v1/partner/";

/// Records the spans of requests.
#[derive(Clone)]
pub struct RequestSpans {
    pub recorder: Arc<dyn SpanRecorder>,
    pub clock: Arc<dyn Clock>,
}

/// A request whose span is recorded when it is answered.
pub(super) struct BegunRequest {
    spans: RequestSpans,
    start: DateTime<Utc>,
    cause: Option<RemoteSpan>,
}

/// The session that a request has created, or created before: its span belongs to the session's trace.
#[derive(Clone, Copy)]
struct CreatedBy(SessionId);

/// The request has a valid key and is within its limits. The span of no other request is recorded:
/// anybody could fill the queue with them. Contains the trace that the request has if it creates no
/// session; `None` if that is not sampled.
#[derive(Clone, Copy)]
struct Admitted(Option<OwnTrace>);

/// Notes that a request has a valid key and is within its limits. Log lines name its trace from
/// now on.
pub(super) fn note_admitted(request: &HttpRequest) {
    let Some(spans) = request.app_data::<RequestSpans>() else { return };
    let own = spans.recorder.new_trace();
    request.extensions_mut().insert(Admitted(own));
    if let Some(own) = own {
        tracing::Span::current().record("request.trace", display(own));
    }
}

/// Notes that a request has created this session, or created it before. Log lines name the
/// session's trace from now on, instead of the request's own.
pub(super) fn note_created(request: &HttpRequest, session: SessionId) {
    request.extensions_mut().insert(CreatedBy(session));
    if request.app_data::<RequestSpans>().is_some() {
        tracing::Span::current().record("session.id", display(session));
    }
}

/// Begins the span of a request to the partner API.
pub(super) fn begin(request: &HttpRequest) -> Option<BegunRequest> {
    let spans = request.app_data::<RequestSpans>()?;
    if !request.path().starts_with(PREFIX) {
        return None;
    }
    let cause = trace_parent(request.headers());
    Some(BegunRequest { spans: spans.clone(), start: spans.clock.now(), cause })
}

impl BegunRequest {
    /// Records the span of an admitted request.
    pub(super) fn end(self, request: &HttpRequest, status: StatusCode) {
        let admitted = request.extensions().get::<Admitted>().copied();
        let Some(Admitted(own)) = admitted else { return };
        let created = request.extensions().get::<CreatedBy>().copied();
        let mut attributes = vec![SpanAttribute::ResponseStatus(status.as_u16())];
        let trace = if let Some(CreatedBy(session)) = created {
            SpanTrace::Session(session)
        } else {
            let Some(own) = own else { return };
            attributes.extend(named_session(request, status).map(SpanAttribute::Session));
            SpanTrace::Own(own)
        };
        self.spans.recorder.record(Span {
            trace,
            subject: SpanSubject::Request {
                method: method(request),
                route: Some(route(request.path()))
                    .filter(|route| *route != NO_ROUTE)
                    .map(|route| format!("{PREFIX}{route}")),
            },
            start: self.start,
            end: self.spans.clock.now(),
            error: None,
            attributes,
            cause: self.cause,
        });
    }
}

/// Returns the session that the path names, if the caller may know it.
fn named_session(request: &HttpRequest, status: StatusCode) -> Option<SessionId> {
    let rest = request.path().strip_prefix(PREFIX)?.strip_prefix("browser-session/")?;
    let id = rest.split('/').next().filter(|_| status.is_success())?;
    id.parse().ok()
}

/// Reads the header `traceparent`, if there is exactly one and it is valid: of version 00, or of a later
/// one that begins in the same way.
fn trace_parent(headers: &HeaderMap) -> Option<RemoteSpan> {
    let mut all = headers.get_all("traceparent");
    let (text, other) = (all.next()?.to_str().ok()?, all.next());
    if other.is_some() || text.len() > MAX_TRACE_PARENT_BYTES {
        return None;
    }
    let mut parts = text.split('-');
    let version = hexadecimal::<1>(parts.next()?)?;
    let trace = hexadecimal::<16>(parts.next()?)?;
    let span = hexadecimal::<8>(parts.next()?)?;
    hexadecimal::<1>(parts.next()?)?;
    let is_complete = version != [0xFF] && (version != [0] || parts.next().is_none());
    let is_valid = is_complete && trace != [0; 16] && span != [0; 8];
    is_valid.then_some(RemoteSpan { trace, span })
}

/// The length of a value of version 00 is 55; later versions may add to it.
const MAX_TRACE_PARENT_BYTES: usize = 256;

/// Reads exactly this many bytes of lower-case hexadecimal digits.
fn hexadecimal<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = *byte << 4 | value;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn read(values: &[&str]) -> Option<RemoteSpan> {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_str(value).unwrap();
            headers.append(HeaderName::from_static("traceparent"), value);
        }
        trace_parent(&headers)
    }

    #[test]
    fn a_valid_trace_parent_is_read() {
        let parent = read(&[VALID]).unwrap();
        assert_eq!(parent.trace[..3], [0x4b, 0xf9, 0x2f]);
        assert_eq!(parent.span, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        let later = VALID.replacen("00", "42", 1);
        assert_eq!(read(&[&later]), Some(parent));
        assert_eq!(read(&[&format!("{later}-more")]), Some(parent));
    }

    #[test]
    fn an_invalid_trace_parent_is_ignored() {
        for invalid in [
            String::new(),
            VALID.to_uppercase(),
            VALID.replacen("00", "ff", 1),
            VALID.replacen("00-", "", 1),
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            VALID.replace("4736", "473g"),
            VALID.replace("4736", "47366"),
            format!("{VALID}-more"),
            format!("{VALID}1"),
            format!(" {VALID}"),
            VALID.trim_end_matches("-01").to_owned(),
            format!("{}-{}", VALID.replacen("00", "42", 1), "x".repeat(300)),
        ] {
            assert_eq!(read(&[&invalid]), None, "{invalid}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[VALID, VALID]), None, "which of the two would it be?");
    }
}
