//! Routes by their methods. The pages of all routes are rendered in the language of their reader.

use actix_web::{FromRequest, Handler, Responder, Route, guard, middleware::from_fn, web};

use crate::language::render;

/// A route for GET, and HEAD, as required by RFC 9110, section 9.1.
pub(crate) fn reading<F, Args>(handler: F) -> Route
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    let guard = guard::Any(guard::Get()).or(guard::Head());
    web::route().guard(guard).to(handler).wrap(from_fn(render))
}

/// A route for the POST of a form.
pub(crate) fn submitting<F, Args>(handler: F) -> Route
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    web::post().to(handler).wrap(from_fn(render))
}

/// A route for every method.
pub(crate) fn any<F, Args>(handler: F) -> Route
where
    F: Handler<Args>,
    Args: FromRequest + 'static,
    F::Output: Responder + 'static,
{
    web::route().to(handler).wrap(from_fn(render))
}
