//! The methods of pages.

use actix_web::{Route, guard, web};

/// A route for GET, and HEAD, as required by RFC 9110, section 9.1.
pub(crate) fn reading() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}
