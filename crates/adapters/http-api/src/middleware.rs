//! What every answer has around it: a request id, the rate limit's headers, a span in the log and a
//! place in the metrics; and an answer even where a handler broke.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use actix_web::{
    Error, HttpMessage as _,
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
use tracing::Instrument as _;
use uuid::Uuid;

use super::{
    error::{ApiError, in_our_words},
    measure::measure,
    refusals,
};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
/// Two years (RFC 6797); other names of the domain are not ours to decide about.
const HSTS: &str = "max-age=63072000";
/// What an answer has that says nothing else of it: it is for whoever asked, and no page.
const DEFAULTS: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
];
const MAX_REQUEST_ID_BYTES: usize = 128;

// New ids are unlike any other process's and follow one another: they are no secret, and this asks
// the kernel for nothing.
static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Whether the public address is https.
#[derive(Clone, Copy)]
pub(super) struct Https(pub(super) bool);

pub(super) async fn frame(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse, Error> {
    let began = Instant::now();
    let id = request_id(request.headers());
    let https = request.app_data::<Https>().is_some_and(|https| https.0);
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    // A task of its own: the server drops the work on a request whose client disconnects, but a use
    // case that was dropped half-way would leave its second half undone, and one that was dropped
    // within a statement would leave its database connection in an unknown state (ADR 0009).
    let detached = actix_web::rt::spawn(next.call(request).instrument(span.clone()));
    let Ok(answered) = detached.await else {
        tracing::error!(request.id = ?id, "a handler panicked");
        metrics::counter!("avouch_http_panics_total").increment(1);
        let mut response = ApiError::Panicked.into_response();
        surround(response.headers_mut(), id, https);
        return Err(InternalError::from_response("panicked", response).into());
    };
    let response = answered?;
    span.in_scope(|| refusals::note(&response));
    let mut response = in_our_words(response);
    let window = response.request().extensions().get::<RateWindow>().copied();
    let headers = response.headers_mut();
    surround(headers, id, https);
    if let Some(window) = window {
        headers.insert(LIMIT, window.limit.count.into());
        headers.insert(REMAINING, window.remaining().into());
        headers.insert(RESET, window.reset().into());
    }
    span.in_scope(|| measure(response.request(), response.status(), began));
    Ok(response)
}

/// The headers that every answer has, and those that it has where nothing else was said.
fn surround(headers: &mut HeaderMap, id: HeaderValue, https: bool) {
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

/// The caller's own id where it is a sane one, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=MAX_REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(plain)
    };
    if let Some(own) = headers.get(REQUEST_ID).filter(sane) {
        return own.clone();
    }
    let id = Uuid::from_u64_pair(*PROCESS, NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut text = Uuid::encode_buffer();
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("none"))
}
