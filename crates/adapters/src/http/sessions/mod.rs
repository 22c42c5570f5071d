//! Sessions, one endpoint a file, in the order of the specification.

pub(super) mod create;
pub(super) mod erase;
pub(super) mod get;
pub(super) mod list;
pub(super) mod recording;
pub(super) mod terminate;
pub(super) mod timeline;
mod wire;

use actix_web::web;
use domain::id::SessionId;

use super::{
    error::ApiError,
    methods::{reading, wrong_method},
};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/partner/browser-session")
                .route(web::post().to(create::create))
                .default_service(wrong_method("POST")),
        )
        .service(
            web::resource("/v1/partner/browser-sessions")
                .route(reading().to(list::list))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}")
                .route(reading().to(get::get))
                .route(web::delete().to(terminate::terminate))
                .default_service(wrong_method("GET, HEAD, DELETE")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/recording")
                .route(reading().to(recording::recording))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/events")
                .route(reading().to(timeline::timeline))
                .default_service(wrong_method("GET, HEAD")),
        )
        .service(
            web::resource("/v1/partner/browser-session/{id}/data")
                .route(web::delete().to(erase::erase))
                .default_service(wrong_method("DELETE")),
        );
}

/// A path that is no uuid names no session.
fn session_id(path: &str) -> Result<SessionId, ApiError> {
    path.parse().map_err(|_| ApiError::SessionNotFound)
}
