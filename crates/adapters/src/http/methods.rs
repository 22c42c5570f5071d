//! Which methods a path has; what has none is counted and refused like everything else.

use actix_web::{Route, guard, web};

use super::{caller::Caller, error::ApiError};

/// GET, and HEAD as RFC 9110 (section 9.1) asks for.
pub(super) fn reading() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// Refuses with the methods that are allowed.
pub(super) fn wrong_method(allowed: &'static str) -> Route {
    web::route().to(move |_: Caller| async move { ApiError::WrongMethod(allowed).into_response() })
}

/// Refuses a path that is none.
pub(super) fn nothing_here() -> Route {
    web::route().to(async |_: Caller| ApiError::NotFound.into_response())
}
