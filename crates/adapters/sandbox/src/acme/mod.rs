//! The site of `acme-sandbox`: an account provider with cookies, a CSRF token and sessions on the
//! server. The user name decides what happens.

mod pages;

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, cookie::Cookie, web};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::{responses, sessions::Sessions};

const COOKIE: &str = "acme_sid";
/// A second cookie, as on most sites.
const PREFERENCE: &str = "acme_consent";
/// A cookie that is renewed with each response of the account API.
const RENEWED: &str = "acme_seen";
const SLOW: Duration = Duration::from_secs(3);
const VERY_SLOW: Duration = Duration::from_secs(30);
/// A user whose account data differ when they are requested by the attestor.
const ATTEST_FAIL: &str = "attest_fail";
const CODE: &str = "123456";
const ANSWER: &str = "blue";

/// The site, with its sessions by the value of the cookie.
#[derive(Default)]
pub(crate) struct AcmeSite {
    visitors: Sessions<SiteVisitor>,
}

#[derive(Clone)]
struct SiteVisitor {
    csrf: Uuid,
    user: Option<String>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Out,
    Code,
    Question,
    Approval,
    Challenge,
    In,
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/", web::get().to(async || responses::redirect("/account")))
        .route("/login", web::get().to(login))
        .route("/login", web::post().to(sign_in))
        .route("/code", web::get().to(code))
        .route("/code", web::post().to(check_code))
        .route("/question", web::get().to(question))
        .route("/question", web::post().to(check_answer))
        .route("/approve", web::get().to(approve))
        .route("/approved", web::get().to(approved))
        .route("/challenge", web::get().to(challenge))
        .route("/challenge", web::post().to(solve))
        .route("/welcome", web::get().to(welcome))
        .route("/account", web::get().to(account))
        .route("/leave.js", web::get().to(pages::leaving_script))
        .route("/account.js", web::get().to(pages::account_script))
        .route("/type.js", web::get().to(responses::typing_script))
        .route("/api/me", web::get().to(me))
        .route("/api/stats", web::get().to(stats))
        .route("/icon.svg", web::get().to(pages::icon));
}

#[derive(Deserialize)]
struct SignInForm {
    csrf: Uuid,
    user: String,
}

#[derive(Deserialize)]
struct QuestionForm {
    csrf: Uuid,
    answer: String,
}

impl AcmeSite {
    /// Returns the session of the cookie; creates one if there is none.
    fn visitor(&self, request: &HttpRequest) -> (Uuid, SiteVisitor) {
        self.visitors.of_cookie(request, COOKIE).unwrap_or_else(|| {
            let visitor = SiteVisitor { csrf: Uuid::new_v4(), user: None, stage: Stage::Out };
            (self.visitors.create(visitor.clone()), visitor)
        })
    }

    /// Replaces the session's cookie on sign-in, against session fixation.
    fn renew(&self, old: Uuid, visitor: SiteVisitor) -> Uuid {
        self.visitors.take(old);
        self.visitors.create(visitor)
    }
}

async fn login(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    pages::sign_in(id, &visitor, None)
}

async fn sign_in(
    site: web::Data<AcmeSite>,
    request: HttpRequest,
    form: web::Form<SignInForm>,
) -> HttpResponse {
    let (id, mut visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    let user = form.user.trim().to_lowercase();
    let (stage, to) = match user.as_str() {
        "ok" | "no_data" | "partial" | "site_down_midway" | ATTEST_FAIL => (Stage::In, "/account"),
        "slow" | "slow_30" => {
            tokio::time::sleep(if user == "slow" { SLOW } else { VERY_SLOW }).await;
            (Stage::In, "/account")
        }
        "otp" | "logout_midway" => (Stage::Code, "/code"),
        "questions" => (Stage::Question, "/question"),
        "push" | "push_denied" => (Stage::Approval, "/approve"),
        "captcha" => (Stage::Challenge, "/challenge"),
        "unexpected" | "redirects" => (Stage::In, "/welcome"),
        "site_down" => return HttpResponse::ServiceUnavailable().body("Acme is down."),
        "rate_limited" => return HttpResponse::TooManyRequests().body("Too many attempts."),
        _ => return pages::sign_in(id, &visitor, Some(refusal(&user))),
    };
    visitor.user = Some(user);
    visitor.stage = stage;
    let id = site.renew(id, visitor);
    pages::with_cookie(id, responses::redirect(to))
}

/// Returns the code and the text of what the site says to a user that it does not let in.
fn refusal(user: &str) -> (&'static str, &'static str) {
    match user {
        "locked" => ("locked", "This account is locked."),
        "action_required" => ("action_required", "Accept our new terms in the Acme app first."),
        "automated" => ("automated", "Your browser looks like a program."),
        "signed_in_elsewhere" => ("signed_in_elsewhere", "You are signed in on another device."),
        "passkey" => ("passkey", "This account can only be opened with a passkey."),
        _ => ("bad_credentials", "User name or password is wrong."),
    }
}

/// Waits for an approval in the site's app, which comes, or is refused, after a few seconds.
async fn approve(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Approval {
        pages::approve(id, None)
    } else {
        responses::redirect("/login")
    }
}

async fn approved(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage != Stage::Approval {
        return responses::redirect("/login");
    }
    if visitor.user.as_deref() == Some("push_denied") {
        return pages::approve(id, Some(("denied", "The sign-in was not approved.")));
    }
    let id = site.renew(id, SiteVisitor { stage: Stage::In, ..visitor });
    pages::with_cookie(id, responses::redirect("/account"))
}

async fn challenge(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Challenge {
        pages::challenge(id, &visitor)
    } else {
        responses::redirect("/login")
    }
}

#[derive(Deserialize)]
struct ChallengeForm {
    csrf: Uuid,
}

async fn solve(
    site: web::Data<AcmeSite>,
    request: HttpRequest,
    form: web::Form<ChallengeForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf || visitor.stage != Stage::Challenge {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    let id = site.renew(id, SiteVisitor { stage: Stage::In, ..visitor });
    pages::with_cookie(id, responses::redirect("/account"))
}

/// A page that the site's definition does not know.
async fn welcome(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    pages::welcome(id, visitor.user.as_deref() == Some("redirects"))
}

async fn code(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Code {
        pages::code(id, &visitor, None)
    } else {
        responses::redirect("/login")
    }
}

async fn check_code(
    site: web::Data<AcmeSite>,
    request: HttpRequest,
    form: web::Form<QuestionForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf || visitor.stage != Stage::Code {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    if form.answer.trim() != CODE {
        return pages::code(id, &visitor, Some(("bad_answer", "That is not the code.")));
    }
    if visitor.user.as_deref() == Some("logout_midway") {
        let id = site.renew(id, SiteVisitor { stage: Stage::Out, user: None, ..visitor });
        return pages::with_cookie(id, responses::redirect("/login"));
    }
    let id = site.renew(id, SiteVisitor { stage: Stage::In, ..visitor });
    pages::with_cookie(id, responses::redirect("/account"))
}

async fn question(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if visitor.stage == Stage::Question {
        pages::question(id, &visitor, None)
    } else {
        responses::redirect("/login")
    }
}

async fn check_answer(
    site: web::Data<AcmeSite>,
    request: HttpRequest,
    form: web::Form<QuestionForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf || visitor.stage != Stage::Question {
        return HttpResponse::Forbidden().body("the form is stale");
    }
    if !form.answer.trim().eq_ignore_ascii_case(ANSWER) {
        return pages::question(id, &visitor, Some(("bad_answer", "That is not the answer.")));
    }
    let id = site.renew(id, SiteVisitor { stage: Stage::In, ..visitor });
    pages::with_cookie(id, responses::redirect("/account"))
}

async fn account(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    let Some(user) = visitor.user.filter(|_| visitor.stage == Stage::In) else {
        return pages::with_cookie(id, responses::redirect("/login"));
    };
    if user == "site_down_midway" {
        return HttpResponse::ServiceUnavailable().body("Acme is down.");
    }
    pages::account(id, &user)
}

async fn me(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    match signed_in(&site, &request).as_deref() {
        None => HttpResponse::Unauthorized().json(json!({ "error": "sign in first" })),
        Some("no_data") => HttpResponse::Ok().json(json!({})),
        Some(user) => HttpResponse::Ok()
            .cookie(Cookie::build(RENEWED, Uuid::new_v4().to_string()).path("/").finish())
            .json(json!({
                "id": format!("acme-{user}-4711"),
                "name": name(user, &request),
                "memberSince": "2019-04-01T00:00:00Z",
                // No definition collects these: they stay between the platform and the applicant.
                "email": "ada.example@mail.test",
                "cards": [{ "number": "4000 0566 5566 5556", "limit": 1500 }],
            })),
    }
}

/// For this user the attestor gets another account, so that the attestation fails.
fn name(user: &str, request: &HttpRequest) -> &'static str {
    let witnessed = request.app_config().secure();
    if user == ATTEST_FAIL && witnessed { "Eve Example" } else { "Ada Example" }
}

async fn stats(site: web::Data<AcmeSite>, request: HttpRequest) -> HttpResponse {
    match signed_in(&site, &request).as_deref() {
        None => HttpResponse::Unauthorized().json(json!({ "error": "sign in first" })),
        Some("no_data" | "partial") => HttpResponse::NotFound().json(json!({ "error": "none" })),
        Some(_) => HttpResponse::Ok().json(json!({ "followers": 1289 })),
    }
}

fn signed_in(site: &AcmeSite, request: &HttpRequest) -> Option<String> {
    let (_, visitor) = site.visitor(request);
    visitor.user.filter(|_| visitor.stage == Stage::In)
}
