//! A make-believe account provider: a real little web site with cookies, a CSRF token and
//! sessions on the server. The user name typed decides what happens.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    cookie::{Cookie, SameSite},
    dev::Server,
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION},
    web,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

/// The host the site is reached under by the service's own browsers.
pub const HOST: &str = "sandbox.localhost";
const COOKIE: &str = "acme_sid";
const SLOW: Duration = Duration::from_secs(3);
const CODE: &str = "123456";
const ANSWER: &str = "blue";
/// Visitors remembered; the oldest is forgotten first.
const VISITORS: usize = 10_000;

/// Who has visited, by the value of the cookie.
#[derive(Default)]
struct Site {
    visitors: Mutex<HashMap<Uuid, Visitor>>,
}

#[derive(Clone)]
struct Visitor {
    csrf: Uuid,
    user: Option<String>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Out,
    Code,
    Question,
    In,
}

/// Serves the site on a socket that is already bound.
pub fn serve(listener: std::net::TcpListener) -> std::io::Result<Server> {
    let site = web::Data::new(Site::default());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(site.clone())
            .app_data(web::FormConfig::default().limit(16 * 1024))
            .route("/", web::get().to(async || redirect("/account")))
            .route("/login", web::get().to(login))
            .route("/login", web::post().to(sign_in))
            .route("/code", web::get().to(code))
            .route("/code", web::post().to(check_code))
            .route("/question", web::get().to(question))
            .route("/question", web::post().to(check_answer))
            .route("/account", web::get().to(account))
            .route("/account.js", web::get().to(script))
            .route("/type.js", web::get().to(type_anywhere))
            .route("/api/me", web::get().to(me))
            .route("/api/stats", web::get().to(stats))
            .route("/icon.svg", web::get().to(icon))
    });
    Ok(server.workers(1).disable_signals().listen(listener)?.run())
}

#[derive(Deserialize)]
struct SignIn {
    csrf: Uuid,
    user: String,
}

#[derive(Deserialize)]
struct Answered {
    csrf: Uuid,
    answer: String,
}

impl Site {
    fn visitors(&self) -> MutexGuard<'_, HashMap<Uuid, Visitor>> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The visitor behind the cookie; a new one where there is none.
    fn visitor(&self, request: &HttpRequest) -> (Uuid, Visitor) {
        let id = request.cookie(COOKIE).and_then(|cookie| cookie.value().parse::<Uuid>().ok());
        let mut visitors = self.visitors();
        if let Some((id, known)) = id.and_then(|id| Some((id, visitors.get(&id)?.clone()))) {
            return (id, known);
        }
        if visitors.len() >= VISITORS {
            visitors.clear();
        }
        let (id, visitor) =
            (Uuid::new_v4(), Visitor { csrf: Uuid::new_v4(), user: None, stage: Stage::Out });
        visitors.insert(id, visitor.clone());
        (id, visitor)
    }

    /// Signing in changes the cookie, as it should on any site.
    fn renew(&self, old: Uuid, visitor: Visitor) -> Uuid {
        let mut visitors = self.visitors();
        visitors.remove(&old);
        let id = Uuid::new_v4();
        visitors.insert(id, visitor);
        id
    }
}

async fn login(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    login_page(id, &visitor, None)
}

async fn sign_in(
    site: web::Data<Site>,
    request: HttpRequest,
    form: web::Form<SignIn>,
) -> HttpResponse {
    let (id, mut visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    let user = form.user.trim().to_lowercase();
    let (stage, to) = match user.as_str() {
        "ok" | "no_data" | "partial" => (Stage::In, "/account"),
        "slow" => {
            tokio::time::sleep(SLOW).await;
            (Stage::In, "/account")
        }
        "otp" => (Stage::Code, "/code"),
        "questions" => (Stage::Question, "/question"),
        "locked" => return login_page(id, &visitor, Some(("locked", "This account is locked."))),
        "site_down" => return HttpResponse::ServiceUnavailable().body("Acme is down."),
        _ => {
            let wrong = ("bad_credentials", "User name or password is wrong.");
            return login_page(id, &visitor, Some(wrong));
        }
    };
    visitor.user = Some(user);
    visitor.stage = stage;
    let id = site.renew(id, visitor);
    with_cookie(id, redirect(to))
}

fn login_page(id: Uuid, visitor: &Visitor, error: Option<(&str, &str)>) -> HttpResponse {
    let form = format!(
        r#"<form id="sign-in" method="post" action="/login"><input type="hidden" name="csrf" value="{}">
<label>User name <input name="user" autocomplete="username" required tabindex="1"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required tabindex="2"></label>
<button tabindex="3">Sign in</button></form>"#,
        visitor.csrf
    );
    page(id, "Sign in", error, &form)
}

async fn code(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Code { code_page(id, &visitor, None) } else { redirect("/login") }
}

async fn check_code(
    site: web::Data<Site>,
    request: HttpRequest,
    form: web::Form<Answered>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf || visitor.stage != Stage::Code {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    if form.answer.trim() != CODE {
        return code_page(id, &visitor, Some(("bad_answer", "That is not the code.")));
    }
    let id = site.renew(id, Visitor { stage: Stage::In, ..visitor });
    with_cookie(id, redirect("/account"))
}

fn code_page(id: Uuid, visitor: &Visitor, error: Option<(&str, &str)>) -> HttpResponse {
    let form = format!(
        r#"<p>We sent a code to a number that ends in 56.</p>
<form method="post" action="/code"><input type="hidden" name="csrf" value="{}">
<label>Code <input name="answer" inputmode="numeric" autocomplete="one-time-code" required tabindex="1"></label>
<button tabindex="2">Continue</button></form>"#,
        visitor.csrf
    );
    page(id, "Enter your code", error, &form)
}

async fn question(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Question {
        question_page(id, &visitor, None)
    } else {
        redirect("/login")
    }
}

async fn check_answer(
    site: web::Data<Site>,
    request: HttpRequest,
    form: web::Form<Answered>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf || visitor.stage != Stage::Question {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    if !form.answer.trim().eq_ignore_ascii_case(ANSWER) {
        return question_page(id, &visitor, Some(("bad_answer", "That is not the answer.")));
    }
    let id = site.renew(id, Visitor { stage: Stage::In, ..visitor });
    with_cookie(id, redirect("/account"))
}

fn question_page(id: Uuid, visitor: &Visitor, error: Option<(&str, &str)>) -> HttpResponse {
    let form = format!(
        r#"<p>What is your favourite colour?</p>
<form id="security-question" method="post" action="/question"><input type="hidden" name="csrf" value="{}">
<label>Answer <input name="answer" autocomplete="off" required tabindex="1"></label>
<button tabindex="2">Continue</button></form>"#,
        visitor.csrf
    );
    page(id, "Security question", error, &form)
}

async fn account(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    let Some(user) = visitor.user.filter(|_| visitor.stage == Stage::In) else {
        return with_cookie(id, redirect("/login"));
    };
    let tier =
        if user == "no_data" { "" } else { r#"<dt>Tier</dt><dd data-field="tier">gold</dd>"# };
    let body = format!(
        r#"<main id="account"><p>Hello, {user}.</p><dl>{tier}<dt>Followers</dt><dd id="followers">…</dd></dl>
<script src="/account.js"></script></main>"#
    );
    page(id, "Your account", None, &body)
}

async fn script() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(
        "fetch('/api/stats').then((r) => r.ok ? r.json() : {}).then((s) => { \
         document.getElementById('followers').textContent = s.followers ?? 'none'; });",
    )
}

/// While nothing has been written, the first press of Tab leads to the first field, wherever the
/// page was clicked, and letters typed outside of a field go there too. Scripts that drive the
/// sandbox by keyboard alone rely on it; `autofocus` would make the second field the first stop.
async fn type_anywhere() -> HttpResponse {
    HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(
        "let tabbed = false; addEventListener('keydown', (e) => { \
         const fields = [...document.querySelectorAll('input:not([type=hidden])')]; \
         if (!fields.length || fields.some((field) => field.value)) return; \
         if (e.key === 'Tab' && !tabbed) { tabbed = true; e.preventDefault(); fields[0].focus(); } \
         else if (e.key.length === 1 && !fields.includes(document.activeElement)) fields[0].focus(); \
         });",
    )
}

async fn me(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    match signed_in(&site, &request).as_deref() {
        None => HttpResponse::Unauthorized().json(json!({ "error": "sign in first" })),
        Some("no_data") => HttpResponse::Ok().json(json!({})),
        Some(user) => HttpResponse::Ok().json(json!({
            "id": format!("acme-{user}-4711"),
            "name": "Ada Example",
            "memberSince": "2019-04-01T00:00:00Z",
        })),
    }
}

async fn stats(site: web::Data<Site>, request: HttpRequest) -> HttpResponse {
    match signed_in(&site, &request).as_deref() {
        None => HttpResponse::Unauthorized().json(json!({ "error": "sign in first" })),
        Some("no_data" | "partial") => HttpResponse::NotFound().json(json!({ "error": "none" })),
        Some(_) => HttpResponse::Ok().json(json!({ "followers": 1289 })),
    }
}

fn signed_in(site: &Site, request: &HttpRequest) -> Option<String> {
    let (_, visitor) = site.visitor(request);
    visitor.user.filter(|_| visitor.stage == Stage::In)
}

async fn icon() -> HttpResponse {
    HttpResponse::Ok().content_type("image/svg+xml").body(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#7a1fa2"/><path d="M8 24 16 7l8 17h-4l-4-9-4 9z" fill="#fff"/></svg>"##,
    )
}

fn redirect(to: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, to)).finish()
}

fn with_cookie(id: Uuid, mut response: HttpResponse) -> HttpResponse {
    let cookie = Cookie::build(COOKIE, id.to_string()).path("/").http_only(true);
    // A cookie of letters, digits and hyphens always fits into a header.
    let _ = response.add_cookie(&cookie.same_site(SameSite::Lax).finish());
    response
}

fn page(id: Uuid, title: &str, error: Option<(&str, &str)>, body: &str) -> HttpResponse {
    let error = error.map_or(String::new(), |(code, text)| {
        format!(r#"<p class="error" data-code="{code}" role="alert">{text}</p>"#)
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
