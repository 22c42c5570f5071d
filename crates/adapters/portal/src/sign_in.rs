//! Signing in and out.

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderName, HeaderValue},
    web,
};
use ports::driving::{PasskeyChallenge, PortalError, SignInAttempt, SignedIn, SignedInUser};
use serde::Deserialize;

use crate::{
    Portal,
    authenticated::{browsers, request_origin, token, visitor, with_sign_in, without_token},
    error::{PageError, see},
    forms::{CsrfFormBeforeDuty, PublicForm},
    identity,
    page::PortalPage,
};

/// Where somebody is who has signed in and wanted nothing in particular.
pub(crate) const HOME: &str = "/portal/overview";
const LONGEST_PATH: usize = 500;
/// What a browser still shows of the pages when somebody goes back. Not `"storage"`: applicants'
/// devices keep the secret of their session for the same origin. Not `"cookies"`: they would go for
/// the whole registrable domain, other sites' among them; the portal's own is deleted by name, and
/// what a browser is known by stays.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal", web::get().to(async || see(HOME)))
        .route("/portal/sign-in", web::get().to(page))
        .route("/portal/sign-in", web::post().to(sign_in))
        .route("/portal/sign-in/code", web::get().to(code_page))
        .route("/portal/sign-in/code", web::post().to(show_code))
        .route("/portal/sign-out", web::post().to(sign_out));
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

async fn page(portal: web::Data<Portal>, next: web::Query<Next>) -> HttpResponse {
    form(&portal, &next.next, "").shown()
}

pub(crate) fn form(portal: &Portal, next: &str, email: &str) -> PortalPage {
    PortalPage::new("sign-in.html", "Sign in")
        .with("next", inside(next))
        .with("away", on_to("/portal/sign-in/away", &inside(next)))
        .with("provider", identity::name(portal))
        .with("email", email)
        .with("done", "")
}

async fn sign_in(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: PublicForm,
) -> Result<HttpResponse, PageError> {
    let fields = sent.0;
    let (email, next) = (fields.text("email"), fields.text("next"));
    let attempt = SignInAttempt {
        email: email.chars().take(300).collect(),
        password: fields.secret("password"),
        from: request_origin(&request),
        browsers: browsers(&request),
    };
    match portal.accounts.sign_in(attempt).await {
        Ok(answer) => Ok(signed_in(&answer, next)),
        Err(
            error @ (PortalError::WrongPassword
            | PortalError::PasswordRanOut
            | PortalError::TooMany { .. }),
        ) => Ok(form(&portal, next, email).refused(&error)),
        Err(error) => Err(error.into()),
    }
}

/// On to where somebody wanted, or to what they are asked for before.
pub(crate) fn signed_in(answer: &SignedIn, next: &str) -> HttpResponse {
    let next = inside(next);
    if !answer.needs_code {
        return with_sign_in(see(&next), answer);
    }
    with_sign_in(see(&on_to("/portal/sign-in/code", &next)), answer)
}

/// A page that leads on to another.
fn on_to(page: &str, next: &str) -> String {
    let query =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("{page}?{query}")
}

async fn code_page(
    portal: web::Data<Portal>,
    next: web::Query<Next>,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    match visitor(&request).await? {
        Some(visitor) if visitor.passed => Ok(see(HOME)),
        Some(visitor) => Ok(code_form(&portal, &visitor, &next.next).await?.shown()),
        None => Ok(see("/portal/sign-in")),
    }
}

pub(crate) async fn code_form(
    portal: &Portal,
    visitor: &SignedInUser,
    next: &str,
) -> Result<PortalPage, PortalError> {
    let asked = portal.passkeys.ask_passkey(visitor).await?;
    let page = PortalPage::new("code.html", "Confirm it is you")
        .with("next", inside(next))
        .with("has_codes", visitor.has_codes);
    Ok(match asked {
        Some(PasskeyChallenge { options, sealed }) => {
            page.with("options", options).with("asked", sealed.expose())
        }
        None => page.with("options", "").with("asked", ""),
    })
}

async fn show_code(
    portal: web::Data<Portal>,
    request: HttpRequest,
    sent: PublicForm,
) -> Result<HttpResponse, PageError> {
    let found = visitor(&request).await?.filter(|visitor| !visitor.passed);
    let (fields, Some(visitor), Some(token)) = (sent.0, found, token(&request)) else {
        return Ok(see("/portal/sign-in"));
    };
    let (code, next) = (fields.text("code"), fields.text("next"));
    let shown =
        portal.accounts.verify_totp(&token, code, request_origin(&request), browsers(&request));
    match shown.await {
        Ok(signed_in) => Ok(with_sign_in(see(&inside(next)), &signed_in)),
        Err(error @ (PortalError::WrongCode | PortalError::TooMany { .. })) => {
            Ok(code_form(&portal, &visitor, next).await?.refused(&error))
        }
        // The time for it has run out.
        Err(PortalError::Forbidden) => Ok(see("/portal/sign-in")),
        Err(error) => Err(error.into()),
    }
}

async fn sign_out(
    portal: web::Data<Portal>,
    sent: CsrfFormBeforeDuty,
) -> Result<HttpResponse, PageError> {
    portal.accounts.sign_out(&sent.0.visitor).await?;
    let mut response = without_token(see("/portal/sign-in"));
    response.headers_mut().insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\""));
    Ok(response)
}

/// A path of the portal, whatever somebody wrote into a link.
pub(crate) fn inside(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/?=&%.".contains(&byte);
    let fine = path.len() <= LONGEST_PATH
        && path.starts_with("/portal/")
        && !path.contains("//")
        && !path.contains("..")
        && path.bytes().all(plain);
    if fine { path.to_owned() } else { HOME.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(inside("/portal/audit?before=7"), "/portal/audit?before=7");
        for odd in [
            "",
            "https://evil.example/portal/",
            "//evil.example/portal/",
            "/portal",
            "/portal//evil.example",
            "/portal/../v1",
            "/portal/\\evil.example",
            "/portal/\r\nset-cookie:x",
            "javascript:alert(1)",
        ] {
            assert_eq!(inside(odd), HOME, "{odd}");
        }
    }
}
