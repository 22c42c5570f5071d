//! The methods of a path; requests to unknown paths and methods are counted and refused like all
//! others.

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, Route, guard, web};

use super::{caller::Caller, error::ApiError};

/// A route for GET, and HEAD, as required by RFC 9110, section 9.1.
pub(super) fn reading() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// Refuses with the allowed methods.
pub(super) fn wrong_method(allowed: &'static str) -> Route {
    web::route()
        .to(move |_: Caller| async move { Err::<HttpResponse, _>(ApiError::WrongMethod(allowed)) })
}

/// Refuses an unknown path; within the API only after the request was counted, like every request.
pub(super) fn unknown_path() -> Route {
    web::route().to(async |request: HttpRequest| {
        let path = request.path();
        if path == "/v1" || path.starts_with("/v1/") {
            Caller::extract(&request).await?;
        }
        Err::<HttpResponse, _>(ApiError::NotFound)
    })
}
