//! Which methods a path has; what has none is counted and refused like everything else.

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, Route, guard, web};

use super::{caller::Caller, error::ApiError};

/// GET, and HEAD as RFC 9110 (section 9.1) asks for.
pub(super) fn reading() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// Refuses with the methods that are allowed.
pub(super) fn wrong_method(allowed: &'static str) -> Route {
    web::route().to(move |_: Caller| async move { ApiError::WrongMethod(allowed).into_response() })
}

/// Refuses a path that is none; within the API only after the request was counted, as all are.
pub(super) fn nothing_here() -> Route {
    web::route().to(async |request: HttpRequest| {
        let path = request.path();
        if path == "/v1" || path.starts_with("/v1/") {
            Caller::extract(&request).await?;
        }
        Err::<HttpResponse, _>(ApiError::NotFound)
    })
}
