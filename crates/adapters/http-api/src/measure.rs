//! Request metrics: a time series for each method, route and class of status.

use std::{sync::OnceLock, time::Instant};

use actix_web::{HttpRequest, http::StatusCode};
use metrics::Histogram;

/// All methods that are not served share one name, since each name is a time series.
const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "DELETE", "other"];
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];
/// The route of paths that are none of the interface.
pub(super) const NO_ROUTE: &str = "none";
const ROUTES: [&str; 23] = [
    "browser-session/{id}",
    "browser-session",
    "browser-sessions",
    "browser-session/{id}/recording",
    "browser-session/{id}/events",
    "browser-session/{id}/data",
    "browser-session/{id}/attestation",
    "browser-session/{id}/resend-notification",
    "attestations/verify",
    "test-clock",
    "browser-platforms",
    "notification-platforms",
    "email-templates",
    "supported-countries",
    "error-codes",
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/openapi.json",
    "/embed",
    "/portal",
    "/docs",
    NO_ROUTE,
];

type Classes = [OnceLock<Histogram>; CLASSES.len()];
type Routes = [Classes; ROUTES.len()];

/// The histogram of each series, looked up once: finding a series by its labels costs more than
/// recording a value.
static SERIES: [Routes; METHODS.len()] =
    [const { [const { [const { OnceLock::new() }; CLASSES.len()] }; ROUTES.len()] }; METHODS.len()];

pub(super) fn measure(request: &HttpRequest, status: StatusCode, started_at: Instant) {
    let duration = started_at.elapsed();
    let (name, route) = (request.method().as_str(), route(request.path()));
    tracing::debug!(method = name, route, status = status.as_u16(), took = ?duration, "answered");
    let class = match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    let position = |names: &[&str], name| names.iter().position(|known| *known == name);
    let method = method(request);
    let series = position(&METHODS, method)
        .and_then(|method| SERIES.get(method))
        .zip(position(&ROUTES, route))
        .and_then(|(routes, route)| routes.get(route))
        .zip(position(&CLASSES, class))
        .and_then(|(classes, class)| classes.get(class));
    if let Some(series) = series {
        let histogram = || {
            metrics::histogram!(
                "avouch_http_request_seconds",
                "method" => method, "route" => route, "status" => class
            )
        };
        series.get_or_init(histogram).record(duration);
    }
}

/// Returns the name of a request's method.
pub(super) fn method(request: &HttpRequest) -> &'static str {
    let method = request.method().as_str();
    METHODS.iter().copied().find(|known| *known == method).unwrap_or("other")
}

/// Returns the route of a path. It does not use the router's patterns, since it runs for each
/// request.
pub(super) fn route(path: &str) -> &'static str {
    let exact = |path| ROUTES.iter().copied().find(|route| *route == path);
    let Some(rest) = path.strip_prefix("/v1/partner/") else {
        return match path {
            _ if path.starts_with("/embed/") => "/embed",
            _ if path.starts_with("/portal") => "/portal",
            _ if path.starts_with("/docs") => "/docs",
            _ => exact(path).unwrap_or(NO_ROUTE),
        };
    };
    let Some(session) = rest.strip_prefix("browser-session/") else {
        return exact(rest).filter(|route| !route.starts_with('/')).unwrap_or(NO_ROUTE);
    };
    match session.split_once('/') {
        None => "browser-session/{id}",
        Some((_, "recording")) => "browser-session/{id}/recording",
        Some((_, "events")) => "browser-session/{id}/events",
        Some((_, "data")) => "browser-session/{id}/data",
        Some((_, "attestation")) => "browser-session/{id}/attestation",
        Some((_, "resend-notification")) => "browser-session/{id}/resend-notification",
        Some(_) => NO_ROUTE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of the interface has a route of its own.
    #[test]
    fn each_operation_has_its_route() {
        let document = serde_json::to_value(crate::openapi::document()).unwrap();
        for path in document["paths"].as_object().unwrap().keys() {
            let asked = format!("/v1{path}").replace("{id}", "0");
            assert_eq!(format!("/partner/{}", route(&asked)), *path);
            assert!(ROUTES.contains(&route(&asked)), "{path}");
        }
    }

    #[test]
    fn each_path_has_its_route() {
        for (path, expected) in [
            ("/v1/partner/browser-session/0", "browser-session/{id}"),
            ("/v1/partner/browser-session/0/events", "browser-session/{id}/events"),
            ("/v1/partner/browser-session/0/events/1", "none"),
            (
                "/v1/partner/browser-session/0/resend-notification",
                "browser-session/{id}/resend-notification",
            ),
            ("/v1/partner/browser-session/0/attestation", "browser-session/{id}/attestation"),
            ("/v1/partner/attestations/verify", "attestations/verify"),
            ("/v1/partner/browser-session", "browser-session"),
            ("/v1/partner/error-codes", "error-codes"),
            ("/v1/partner//healthz", "none"),
            ("/healthz", "/healthz"),
            ("/embed/x", "/embed"),
            ("/portal/keys", "/portal"),
            ("/docs/index.html", "/docs"),
            ("/error-codes", "none"),
        ] {
            assert_eq!(route(path), expected, "{path}");
        }
    }
}
