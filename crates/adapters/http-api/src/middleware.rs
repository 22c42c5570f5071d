//! What every response gets: a request id, rate-limit headers, a span in the log, metrics, and a
//! 500 response if a handler panicked.

use std::{
    rc::Rc,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use actix_web::{
    Error, HttpMessage as _, HttpResponse,
    body::BoxBody,
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue,
        REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    },
    middleware::Next,
};
use domain::rate::RateWindow;
use tracing::{Instrument as _, field::Empty};
use uuid::Uuid;

use super::{error::ErrorBodies, measure::measure, refusals, request_spans};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// Two years (RFC 6797). Subdomains are not included, since other hosts of the domain are not ours
/// to decide about.
const HSTS: &str = "max-age=63072000";
/// The default headers of a response: it is not cached, not embedded, and loads nothing.
const DEFAULTS: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
];
const MAX_REQUEST_ID_BYTES: usize = 128;

// Generated ids consist of a random number of the process and a counter. They are not secret, and
// generating one needs no system call.
static PROCESS_ID: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Whether the public URL is https.
#[derive(Clone, Copy)]
pub(super) struct Https(pub(super) bool);

pub(super) async fn respond(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let started_at = Instant::now();
    let begun = request_spans::begin(request.request());
    let id = request_id(request.headers());
    let https = request.app_data::<Https>().is_some_and(|https| https.0);
    let errors = request.app_data::<Rc<ErrorBodies>>().cloned();
    // The empty fields are for requests that have a trace, or have created a session.
    let span = tracing::info_span!(
        "request",
        request.id = id.to_str().unwrap_or_default(),
        request.trace = Empty,
        session.id = Empty
    );
    // A task of its own: the server drops a request's future when its client disconnects. A use
    // case that is dropped midway would remain half done, and a dropped database statement would
    // leave its connection in an unknown state (ADR 0009).
    let detached = actix_web::rt::spawn(next.call(request).instrument(span.clone()));
    let Ok(answered) = detached.await else {
        tracing::error!(request.id = ?id, "a handler panicked");
        metrics::counter!("avouch_http_panics_total").increment(1);
        let panicked = errors.map(|errors| errors.panicked());
        let mut response = panicked.unwrap_or_else(|| HttpResponse::InternalServerError().finish());
        set_common_headers(response.headers_mut(), id, https);
        return Err(InternalError::from_response("panicked", response).into());
    };
    let response = answered?;
    span.in_scope(|| refusals::record(&response));
    let mut response = match errors {
        Some(errors) => errors.complete(response),
        None => response,
    };
    let window = response.request().extensions().get::<RateWindow>().copied();
    let headers = response.headers_mut();
    set_common_headers(headers, id, https);
    if let Some(window) = window {
        headers.insert(LIMIT, window.limit.count.into());
        headers.insert(REMAINING, window.remaining().into());
        headers.insert(RESET, window.reset().into());
    }
    span.in_scope(|| measure(response.request(), response.status(), started_at));
    if let Some(begun) = begun {
        begun.end(response.request(), response.status());
    }
    Ok(response)
}

/// Answers another instance, also if that does not wait any more (ADR 0009). The instance that forwards the
/// request, and not this one, measures it and adds the headers that every response has.
pub(super) async fn complete(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let Ok(answered) = actix_web::rt::spawn(next.call(request)).await else {
        tracing::error!("a handler panicked");
        metrics::counter!("avouch_http_panics_total").increment(1);
        let response = HttpResponse::InternalServerError().finish();
        return Err(InternalError::from_response("panicked", response).into());
    };
    answered
}

/// Sets the headers that every response has, and the default ones that are absent.
fn set_common_headers(headers: &mut HeaderMap, id: HeaderValue, https: bool) {
    headers.insert(REQUEST_ID, id);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if https {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(HSTS));
    }
    for (name, value) in DEFAULTS {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

/// Returns the caller's own id if it is short and plain, otherwise a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_valid = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=MAX_REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(is_plain)
    };
    if let Some(own) = headers.get(REQUEST_ID).filter(is_valid) {
        return own.clone();
    }
    let id = Uuid::from_u64_pair(*PROCESS_ID, NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut text = Uuid::encode_buffer();
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("none"))
}
