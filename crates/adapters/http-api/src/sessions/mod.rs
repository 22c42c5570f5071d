//! Sessions, one file per endpoint, in the order of the specification.

pub(super) mod attestation;
pub(super) mod create;
pub(super) mod erase;
pub(super) mod get;
pub(super) mod list;
pub(super) mod notify;
pub(super) mod recording;
pub(super) mod terminate;
pub(super) mod test_clock;
pub(super) mod timeline;
mod wire;

use std::future::{Ready, ready};

use actix_web::{
    FromRequest, HttpRequest, Route, Scope,
    dev::Payload,
    guard::{self, Guard, GuardContext},
    web,
};
use domain::id::SessionId;

use super::{
    error::ApiError,
    methods::{reading, wrong_method},
};

const SESSION: &str = "/v1/partner/browser-session";

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource(SESSION)
                .route(web::post().to(create::create))
                .default_service(wrong_method("POST")),
        )
        .service(
            web::resource("/v1/partner/browser-sessions")
                .route(reading().to(list::list))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(one_session(guard::Any(guard::Get()).or(guard::Head()), web::route().to(get::get)))
        .service(one_session(guard::Delete(), web::route().to(terminate::terminate)))
        .service(one_session(guard::fn_guard(|_| true), wrong_method("GET, HEAD, DELETE")))
        .service(
            web::resource("/v1/partner/browser-session/{id}/recording")
                .route(reading().to(recording::recording))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/attestation")
                .route(reading().to(attestation::attestation))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/events")
                .route(reading().to(timeline::timeline))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/resend-notification")
                .route(web::post().to(notify::resend))
                .default_service(wrong_method("POST")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/data")
                .route(web::delete().to(erase::erase))
                .default_service(wrong_method("DELETE")),
        )
        .service(
            web::resource("/v1/partner/test-clock")
                .route(web::post().to(test_clock::advance))
                .default_service(wrong_method("POST")),
        );
}

/// Matches `browser-session/{id}` by prefix and guard instead of a pattern: partners poll this
/// path, and the router's regular expression costs each poll more than counting it for the rate
/// limit.
fn one_session(methods: impl Guard + 'static, route: Route) -> Scope {
    web::scope(SESSION).guard(methods).guard(guard::fn_guard(is_one_segment)).default_service(route)
}

fn is_one_segment(request: &GuardContext<'_>) -> bool {
    let rest = request.head().uri.path().strip_prefix(SESSION);
    let id = rest.and_then(|rest| rest.strip_prefix('/'));
    id.is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

/// The session in the rest of the path; `None` if it is not a UUID.
pub(crate) struct Named(Option<SessionId>);

impl FromRequest for Named {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let rest = request.match_info().unprocessed();
        ready(Ok(Self(rest.strip_prefix('/').and_then(|id| id.parse().ok()))))
    }
}

/// Returns the session of a path; a path that is not a UUID names no session.
fn session_id(path: &str) -> Result<SessionId, ApiError> {
    path.parse().map_err(|_| ApiError::SessionNotFound)
}
