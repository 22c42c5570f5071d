//! The pages of the provider.

use actix_web::{
    HttpResponse,
    cookie::{Cookie, SameSite},
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
};
use uuid::Uuid;

use super::COOKIE;
use crate::responses;

/// The response to a form leads to the client, which counts as an action of the form (CSP 3, section
/// 6.4.2).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    form-action 'self' http://shop.sandbox.localhost; base-uri 'none'; frame-ancestors 'none'";

/// The code and the text of what was not accepted.
type Refusal = (&'static str, &'static str);

pub(super) fn sign_in(id: Uuid, csrf: Uuid, error: Option<Refusal>) -> HttpResponse {
    let form = format!(
        r#"<form id="login" method="post" action="/login"><input type="hidden" name="csrf" value="{csrf}">
<label>User name <input name="user" autocomplete="username" required tabindex="1"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required tabindex="2"></label>
<button tabindex="3">Sign in</button></form>"#
    );
    page(id, "Sign in with your Acme ID", error, &form)
}

pub(super) fn code(id: Uuid, csrf: Uuid, error: Option<Refusal>) -> HttpResponse {
    let form = format!(
        r#"<p id="code-target">We sent a code to a number that ends in 56.</p>
<form id="code" method="post" action="/code"><input type="hidden" name="csrf" value="{csrf}">
<label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code" required tabindex="1"></label>
<button tabindex="2">Continue</button></form>"#
    );
    page(id, "Enter your code", error, &form)
}

pub(super) fn permission(id: Uuid, csrf: Uuid) -> HttpResponse {
    let form = format!(
        r#"<form id="permission" method="post" action="/permission"><input type="hidden" name="csrf" value="{csrf}">
<p>Acme Shop wants to see your name and your account number.</p>
<button name="answer" value="allow" tabindex="1">Allow</button>
<button name="answer" value="deny" tabindex="2">Deny</button></form>"#
    );
    page(id, "Permission", None, &form)
}

/// The response to a request for authorization that is not the client's.
pub(super) fn not_asked() -> HttpResponse {
    HttpResponse::BadRequest().body("no application asks for your Acme ID")
}

/// The response to a form of another session.
pub(super) fn stale() -> HttpResponse {
    HttpResponse::Forbidden().body("the form is stale")
}

pub(super) async fn style() -> HttpResponse {
    responses::stylesheet(include_str!("accounts.css"))
}

pub(super) fn with_cookie(id: Uuid, mut response: HttpResponse) -> HttpResponse {
    let cookie = Cookie::build(COOKIE, id.to_string()).path("/").http_only(true);
    // A cookie of letters, digits and hyphens is always a valid header value.
    let _ = response.add_cookie(&cookie.same_site(SameSite::Lax).finish());
    response
}

fn page(id: Uuid, title: &str, error: Option<Refusal>, body: &str) -> HttpResponse {
    let error = error.map_or(String::new(), |(code, text)| {
        format!(r#"<p id="error" class="error" data-code="{code}" role="alert">{text}</p>"#)
    });
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/accounts.css\"></head><body><script src=\"/type.js\"></script>\
         <header>Acme ID</header><div><h1>{title}</h1>{error}{body}</div></body></html>"
    );
    let response = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .body(html);
    with_cookie(id, response)
}
