//! The pages of the site.

use actix_web::{
    HttpResponse,
    cookie::{Cookie, SameSite},
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY},
};
use uuid::Uuid;

use super::{COOKIE, PREFERENCE, SiteVisitor};

pub(super) fn sign_in(
    id: Uuid,
    visitor: &SiteVisitor,
    error: Option<(&str, &str)>,
) -> HttpResponse {
    let form = format!(
        r#"<form id="sign-in" method="post" action="/login"><input type="hidden" name="csrf" value="{}">
<label>User name <input name="user" autocomplete="username" required tabindex="1"{invalid}></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required tabindex="2"{invalid}></label>
<button tabindex="3">Sign in</button></form>"#,
        visitor.csrf,
        invalid = invalid(error),
    );
    page(id, "Sign in", error, &form)
}

pub(super) fn code(id: Uuid, visitor: &SiteVisitor, error: Option<(&str, &str)>) -> HttpResponse {
    let form = format!(
        r#"<p id="code-target">We sent a code to a number that ends in 56.</p>
<form method="post" action="/code"><input type="hidden" name="csrf" value="{}">
<label>Code <input name="answer" inputmode="numeric" autocomplete="one-time-code" required tabindex="1"{invalid}></label>
<button tabindex="2">Continue</button></form>"#,
        visitor.csrf,
        invalid = invalid(error),
    );
    page(id, "Enter your code", error, &form)
}

pub(super) fn question(
    id: Uuid,
    visitor: &SiteVisitor,
    error: Option<(&str, &str)>,
) -> HttpResponse {
    let form = format!(
        r#"<p>What is your favourite colour?</p>
<form id="security-question" method="post" action="/question"><input type="hidden" name="csrf" value="{}">
<label>Answer <input name="answer" autocomplete="off" required tabindex="1"{invalid}></label>
<button tabindex="2">Continue</button></form>"#,
        visitor.csrf,
        invalid = invalid(error),
    );
    page(id, "Security question", error, &form)
}

pub(super) fn approve(id: Uuid, error: Option<(&str, &str)>) -> HttpResponse {
    let refresh = r#"<meta http-equiv="refresh" content="3;url=/approved">"#;
    let refresh = if error.is_none() { refresh } else { "" };
    let body = format!(
        r#"<main id="approval">{refresh}<p>Open the Acme app on your phone, and approve the sign-in.</p></main>"#
    );
    page(id, "Approve the sign-in", error, &body)
}

pub(super) fn challenge(id: Uuid, visitor: &SiteVisitor) -> HttpResponse {
    let form = format!(
        r#"<form id="challenge" method="post" action="/challenge"><input type="hidden" name="csrf" value="{}">
<label><input name="human" type="checkbox" required tabindex="1"> I am not a robot</label>
<button tabindex="2">Continue</button></form>"#,
        visitor.csrf,
    );
    page(id, "Are you a person?", None, &form)
}

pub(super) fn welcome(id: Uuid, leaves: bool) -> HttpResponse {
    let script = if leaves { r#"<script src="/leave.js"></script>"# } else { "" };
    page(id, "Welcome", None, &format!(r#"<p id="welcome">Welcome to the new Acme.</p>{script}"#))
}

/// Tries again and again to lead to a host that is not the site's.
pub(super) async fn leaving_script() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/javascript; charset=utf-8")
        .body("setInterval(() => location.assign('https://elsewhere.invalid/'), 200);")
}

pub(super) fn account(id: Uuid, user: &str) -> HttpResponse {
    let tier =
        if user == "no_data" { "" } else { r#"<dt>Tier</dt><dd data-field="tier">gold</dd>"# };
    let body = format!(
        r#"<main id="account"><p>Hello, {user}.</p><dl>{tier}<dt>Followers</dt><dd id="followers">…</dd></dl>
<script src="/account.js"></script></main>"#
    );
    page(id, "Your account", None, &body)
}

pub(super) async fn account_script() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(
        "fetch('/api/stats').then((r) => r.ok ? r.json() : {}).then((s) => { \
         document.getElementById('followers').textContent = s.followers ?? 'none'; });",
    )
}

pub(super) async fn icon() -> HttpResponse {
    HttpResponse::Ok().content_type("image/svg+xml").body(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#7a1fa2"/><path d="M8 24 16 7l8 17h-4l-4-9-4 9z" fill="#fff"/></svg>"##,
    )
}

pub(super) fn with_cookie(id: Uuid, mut response: HttpResponse) -> HttpResponse {
    let cookie = Cookie::build(COOKIE, id.to_string()).path("/").http_only(true);
    // A cookie of letters, digits and hyphens is always a valid header value.
    let _ = response.add_cookie(&cookie.same_site(SameSite::Lax).finish());
    let _ = response.add_cookie(&Cookie::build(PREFERENCE, "accepted").path("/").finish());
    response
}

/// Returns the attributes of a field whose content the site did not accept.
fn invalid(error: Option<(&str, &str)>) -> &'static str {
    if error.is_some_and(|(code, _)| code.starts_with("bad_")) {
        r#" aria-invalid="true" aria-describedby="error""#
    } else {
        ""
    }
}

fn page(id: Uuid, title: &str, error: Option<(&str, &str)>, body: &str) -> HttpResponse {
    let error = error.map_or(String::new(), |(code, text)| {
        format!(r#"<p id="error" class="error" data-code="{code}" role="alert">{text}</p>"#)
    });
    let style = "body{font:17px/1.5 system-ui,sans-serif;margin:0;background:#f6f1fa;color:#231a29}\
        header{background:#7a1fa2;color:#fff;padding:14px 24px;font-weight:700;font-size:20px}\
        body>div{max-width:420px;margin:40px auto;padding:24px;background:#fff;border-radius:12px}\
        label{display:block;margin:14px 0}input{display:block;width:100%;box-sizing:border-box;\
        font:inherit;padding:9px;border:1px solid #b9a8c4;border-radius:6px}button{font:inherit;\
        padding:10px 20px;border:0;border-radius:6px;background:#7a1fa2;color:#fff}\
        .error{color:#b00020}";
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title} – Acme</title><style>{style}</style></head>\
         <body><script src=\"/type.js\"></script><header>Acme</header><div><h1>{title}</h1>{error}{body}</div></body></html>"
    );
    let response = HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((
            CONTENT_SECURITY_POLICY,
            "default-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ))
        .body(html);
    with_cookie(id, response)
}
