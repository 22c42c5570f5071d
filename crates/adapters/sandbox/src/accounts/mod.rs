//! Acme ID, the identity provider of the shop: an authorization server (RFC 6749, section 4.1) with
//! one client. The user name decides what happens.

mod pages;

use std::time::{Duration, Instant};

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use uuid::Uuid;

use crate::{responses, sessions::Sessions, shop};

/// The host name of the provider.
pub(crate) const HOST: &str = "accounts.sandbox.localhost";
const COOKIE: &str = "acme_id_sid";
const CODE: &str = "123456";
/// The time in which a code is exchanged.
const GRANT_LIFETIME: Duration = Duration::from_secs(60);

/// The accounts that sign in to the shop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum User {
    Ok,
    Otp,
    Denied,
    Empty,
    Many,
}

impl User {
    fn named(name: &str) -> Option<Self> {
        match name {
            "ok" => Some(Self::Ok),
            "otp" => Some(Self::Otp),
            "denied" => Some(Self::Denied),
            "empty" => Some(Self::Empty),
            "many" => Some(Self::Many),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Otp => "otp",
            Self::Denied => "denied",
            Self::Empty => "empty",
            Self::Many => "many",
        }
    }
}

/// The provider, with its sessions by the value of the cookie.
#[derive(Default)]
pub(crate) struct Accounts {
    visitors: Sessions<Visitor>,
    /// What was granted, by the authorization code.
    grants: Sessions<Grant>,
}

#[derive(Clone, Copy)]
struct Visitor {
    csrf: Uuid,
    stage: Stage,
    /// The client's `state`, if the client asks.
    asked: Option<Uuid>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Out,
    Code(User),
    In(User),
}

#[derive(Clone, Copy)]
struct Grant {
    user: User,
    at: Instant,
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/authorize", web::get().to(authorize))
        .route("/login", web::get().to(login))
        .route("/login", web::post().to(sign_in))
        .route("/code", web::get().to(code))
        .route("/code", web::post().to(check_code))
        .route("/permission", web::get().to(permission))
        .route("/permission", web::post().to(answer))
        .route("/accounts.css", web::get().to(pages::style))
        .route("/type.js", web::get().to(responses::typing_script));
}

impl Accounts {
    /// Exchanges a code that the client got for the account, once.
    pub(crate) fn exchange(&self, code: Uuid) -> Option<User> {
        let grant = self.grants.take(code)?;
        (grant.at.elapsed() <= GRANT_LIFETIME).then_some(grant.user)
    }

    /// Returns the session of the cookie; creates one if there is none.
    fn visitor(&self, request: &HttpRequest) -> (Uuid, Visitor) {
        self.visitors.of_cookie(request, COOKIE).unwrap_or_else(|| {
            let visitor = Visitor { csrf: Uuid::new_v4(), stage: Stage::Out, asked: None };
            (self.visitors.create(visitor), visitor)
        })
    }

    /// Replaces the session's cookie on sign-in, against session fixation, and leads on.
    fn advance(&self, old: Uuid, visitor: Visitor) -> HttpResponse {
        self.visitors.take(old);
        let visitor = Visitor { csrf: Uuid::new_v4(), ..visitor };
        let id = self.visitors.create(visitor);
        pages::with_cookie(id, self.lead(visitor))
    }

    /// Leads to the page of the visitor's stage, or back to the client with a code.
    fn lead(&self, visitor: Visitor) -> HttpResponse {
        match (visitor.stage, visitor.asked) {
            (Stage::Out, _) => responses::redirect("/login"),
            (Stage::Code(_), _) => responses::redirect("/code"),
            (Stage::In(_), None) => pages::not_asked(),
            (Stage::In(User::Denied), Some(_)) => responses::redirect("/permission"),
            (Stage::In(user), Some(state)) => self.grant(user, state),
        }
    }

    fn grant(&self, user: User, state: Uuid) -> HttpResponse {
        let code = self.grants.create(Grant { user, at: Instant::now() });
        responses::redirect(&format!("{}?code={code}&state={state}", shop::REDIRECT_URI))
    }
}

#[derive(Deserialize)]
struct AuthorizationRequest {
    response_type: String,
    client_id: String,
    redirect_uri: String,
    state: Uuid,
}

async fn authorize(
    site: web::Data<Accounts>,
    request: HttpRequest,
    asked: web::Query<AuthorizationRequest>,
) -> HttpResponse {
    let is_client = asked.client_id == shop::CLIENT_ID && asked.redirect_uri == shop::REDIRECT_URI;
    if !is_client || asked.response_type != "code" {
        // Nothing is sent to an address that is not the client's (RFC 6749, section 4.1.2.1).
        return pages::not_asked();
    }
    let (id, visitor) = site.visitor(&request);
    let visitor = Visitor { asked: Some(asked.state), ..visitor };
    site.visitors.update(id, visitor);
    pages::with_cookie(id, site.lead(visitor))
}

async fn login(site: web::Data<Accounts>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    pages::sign_in(id, visitor.csrf, None)
}

#[derive(Deserialize)]
struct SignInForm {
    csrf: Uuid,
    user: String,
}

async fn sign_in(
    site: web::Data<Accounts>,
    request: HttpRequest,
    form: web::Form<SignInForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    if form.csrf != visitor.csrf {
        return pages::stale();
    }
    let Some(user) = User::named(&form.user.trim().to_lowercase()) else {
        let error = ("bad_credentials", "User name or password is wrong.");
        return pages::sign_in(id, visitor.csrf, Some(error));
    };
    let stage = if user == User::Otp { Stage::Code(user) } else { Stage::In(user) };
    site.advance(id, Visitor { stage, ..visitor })
}

async fn code(site: web::Data<Accounts>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    match visitor.stage {
        Stage::Code(_) => pages::code(id, visitor.csrf, None),
        Stage::Out | Stage::In(_) => responses::redirect("/login"),
    }
}

#[derive(Deserialize)]
struct CodeForm {
    csrf: Uuid,
    code: String,
}

async fn check_code(
    site: web::Data<Accounts>,
    request: HttpRequest,
    form: web::Form<CodeForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    let Stage::Code(user) = visitor.stage else { return pages::stale() };
    if form.csrf != visitor.csrf {
        return pages::stale();
    }
    if form.code.trim() != CODE {
        return pages::code(id, visitor.csrf, Some(("bad_code", "That is not the code.")));
    }
    site.advance(id, Visitor { stage: Stage::In(user), ..visitor })
}

async fn permission(site: web::Data<Accounts>, request: HttpRequest) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    match (visitor.stage, visitor.asked) {
        (Stage::In(_), Some(_)) => pages::permission(id, visitor.csrf),
        (Stage::Out | Stage::Code(_), _) | (Stage::In(_), None) => responses::redirect("/login"),
    }
}

#[derive(Deserialize)]
struct PermissionForm {
    csrf: Uuid,
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Deny,
}

async fn answer(
    site: web::Data<Accounts>,
    request: HttpRequest,
    form: web::Form<PermissionForm>,
) -> HttpResponse {
    let (id, visitor) = site.visitor(&request);
    let (Stage::In(user), Some(state)) = (visitor.stage, visitor.asked) else {
        return pages::stale();
    };
    if form.csrf != visitor.csrf {
        return pages::stale();
    }
    site.visitors.update(id, Visitor { asked: None, ..visitor });
    match form.answer {
        Answer::Allow => site.grant(user, state),
        Answer::Deny => responses::redirect(&format!(
            "{}?error=access_denied&state={state}",
            shop::REDIRECT_URI
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_exchanged_once_and_in_time() {
        let accounts = Accounts::default();
        let code = accounts.grants.create(Grant { user: User::Many, at: Instant::now() });
        assert_eq!(accounts.exchange(code), Some(User::Many));
        assert_eq!(accounts.exchange(code), None);
        let earlier = Instant::now().checked_sub(GRANT_LIFETIME + Duration::from_secs(1)).unwrap();
        let late = accounts.grants.create(Grant { user: User::Ok, at: earlier });
        assert_eq!(accounts.exchange(late), None);
    }

    #[test]
    fn users_are_found_by_their_names() {
        for user in [User::Ok, User::Otp, User::Denied, User::Empty, User::Many] {
            assert_eq!(User::named(user.name()), Some(user));
        }
        assert_eq!(User::named("nobody"), None);
    }
}
