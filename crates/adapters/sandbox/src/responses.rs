//! Responses that several sites give.

use actix_web::{HttpResponse, http::header::LOCATION};

pub(crate) fn redirect(to: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, to)).finish()
}

pub(crate) fn stylesheet(text: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type("text/css; charset=utf-8").body(text)
}

pub(crate) fn script(text: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(text)
}

/// Before anything is typed, the first press of Tab focuses the first field, wherever the page was
/// clicked, and letters typed outside of a field go there too. Scripts that use the sandbox
/// platform by keyboard alone rely on it; with `autofocus` the first press of Tab would lead to the
/// second field.
pub(crate) async fn typing_script() -> HttpResponse {
    script(
        "let tabbed = false; addEventListener('keydown', (e) => { \
         const fields = [...document.querySelectorAll('input:not([type=hidden])')]; \
         if (!fields.length || fields.some((field) => field.value)) return; \
         if (e.key === 'Tab' && !tabbed) { tabbed = true; e.preventDefault(); fields[0].focus(); } \
         else if (e.key.length === 1 && !fields.includes(document.activeElement)) fields[0].focus(); \
         });",
    )
}
