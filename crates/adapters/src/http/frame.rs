//! What every answer has around it: a request id, the rate limit's headers, a span in the log and a
//! place in the metrics; and an answer even where a handler broke.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use actix_web::{
    Error, HttpMessage as _, HttpRequest,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    error::InternalError,
    http::header::{HeaderMap, HeaderName, HeaderValue},
    middleware::Next,
};
use domain::rate::Window;
use futures_util::FutureExt as _;
use tracing::Instrument as _;
use uuid::Uuid;

use super::error::ApiError;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const LONGEST_ID: usize = 128;

// New ids are unlike any other process's and follow one another: they are no secret, and this asks
// the kernel for nothing.
static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(super) async fn frame<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    let began = Instant::now();
    let id = request_id(request.headers());
    let span = tracing::info_span!("request", request.id = id.to_str().unwrap_or_default());
    let answered = AssertUnwindSafe(next.call(request)).catch_unwind().instrument(span).await;
    let Ok(answered) = answered else {
        tracing::error!(request.id = ?id, "a handler panicked");
        metrics::counter!("avouch_http_panics_total").increment(1);
        let mut response = ApiError::Panicked.into_response();
        response.headers_mut().insert(REQUEST_ID, id);
        return Err(InternalError::from_response("panicked", response).into());
    };
    let mut response = answered?;
    let window = response.request().extensions().get::<Window>().copied();
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if let Some(window) = window {
        headers.insert(LIMIT, window.limit.count.into());
        headers.insert(REMAINING, window.remaining().into());
        headers.insert(RESET, window.reset().into());
    }
    measure(response.request(), response.status().as_u16(), began);
    Ok(response)
}

fn measure(request: &HttpRequest, status: u16, began: Instant) {
    let took = began.elapsed();
    let (method, route) = (method(request), route(request.path()));
    tracing::debug!(method, route, status, ?took, "answered");
    let status = match status / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    metrics::histogram!(
        "avouch_http_request_seconds", "method" => method, "route" => route, "status" => status
    )
    .record(took);
}

/// The route of a path, found without the router's patterns, since this is done for each request.
fn route(path: &str) -> &'static str {
    let Some(rest) = path.strip_prefix("/v1/partner/") else {
        return match path {
            "/healthz" => "/healthz",
            "/readyz" => "/readyz",
            "/metrics" => "/metrics",
            "/v1/openapi.json" => "/v1/openapi.json",
            _ if path.starts_with("/embed/") => "/embed",
            _ if path.starts_with("/docs") => "/docs",
            _ => "none",
        };
    };
    let mut parts = rest.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("browser-session"), None, None, None) => "browser-session",
        (Some("browser-session"), Some(_), None, None) => "browser-session/{id}",
        (Some("browser-session"), Some(_), Some("recording"), None) => {
            "browser-session/{id}/recording"
        }
        (Some("browser-session"), Some(_), Some("events"), None) => "browser-session/{id}/events",
        (Some("browser-session"), Some(_), Some("data"), None) => "browser-session/{id}/data",
        (Some("browser-sessions"), None, None, None) => "browser-sessions",
        (Some("browser-platforms"), None, None, None) => "browser-platforms",
        (Some("notification-platforms"), None, None, None) => "notification-platforms",
        (Some("email-templates"), None, None, None) => "email-templates",
        (Some("supported-countries"), None, None, None) => "supported-countries",
        (Some("error-codes"), None, None, None) => "error-codes",
        _ => "none",
    }
}

/// A method's name; one for all that we do not serve, since each name is a time series.
fn method(request: &HttpRequest) -> &'static str {
    match request.method().as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// The caller's own id where it is a sane one, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
        (1..=LONGEST_ID).contains(&bytes.len()) && bytes.iter().all(plain)
    };
    if let Some(own) = headers.get(REQUEST_ID).filter(sane) {
        return own.clone();
    }
    let id = Uuid::from_u64_pair(*PROCESS, NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut text = Uuid::encode_buffer();
    let text = id.hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("none"))
}
