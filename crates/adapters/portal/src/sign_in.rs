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
    authenticated::{browsers, request_origin, signed_in_user, token, with_sign_in, without_token},
    error::{PageError, redirect},
    forms::{CsrfFormBeforeDuty, PublicForm},
    identity,
    message::message,
    methods::{reading, submitting},
    page::PortalPage,
};

/// The page after a sign-in without a requested page.
pub(crate) const HOME: &str = "/portal/overview";
const MAX_PATH_BYTES: usize = 500;
/// Clears only the browser's cache, so that going back shows no pages of the portal. Not
/// `"storage"`: applicants' devices keep the secret of their session for the same origin. Not
/// `"cookies"`: that would delete the cookies of the registrable domain, including those of other
/// sites. The sign-in cookie is deleted by name, and the cookie of known browsers remains.
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal", reading(async || redirect(HOME)))
        .route("/portal/", reading(async || redirect(HOME)))
        .route("/portal/sign-in", reading(page))
        .route("/portal/sign-in", submitting(sign_in))
        .route("/portal/sign-in/code", reading(code_page))
        .route("/portal/sign-in/code", submitting(verify_code))
        .route("/portal/sign-out", submitting(sign_out));
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

async fn page(portal: web::Data<Portal>, next: web::Query<Next>) -> HttpResponse {
    form(&portal, &next.next, "").into_response()
}

pub(crate) fn form(portal: &Portal, next: &str, email: &str) -> PortalPage {
    PortalPage::new("sign-in.html", message("Sign in"))
        .with("next", portal_path(next))
        .with("away", with_next("/portal/sign-in/away", &portal_path(next)))
        .with("provider", identity::name(portal))
        .with("email", email)
        .with("done", "")
}

async fn sign_in(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: PublicForm,
) -> Result<HttpResponse, PageError> {
    let fields = submitted.0;
    let (email, next) = (fields.text("email"), fields.text("next"));
    let attempt = SignInAttempt {
        email: email.chars().take(300).collect(),
        password: fields.secret("password"),
        from: request_origin(&request),
        browsers: browsers(&request),
    };
    match portal.accounts.sign_in(attempt).await {
        Ok(signed_in_result) => Ok(signed_in(&signed_in_result, next)),
        Err(
            error @ (PortalError::WrongPassword
            | PortalError::PasswordRanOut
            | PortalError::TooMany { .. }),
        ) => Ok(form(&portal, next, email).refused(&error)),
        Err(error) => Err(error.into()),
    }
}

/// Redirects to the requested page, or to the second factor if one is required.
pub(crate) fn signed_in(signed_in_result: &SignedIn, next: &str) -> HttpResponse {
    let next = portal_path(next);
    if !signed_in_result.needs_code {
        return with_sign_in(redirect(&next), signed_in_result);
    }
    with_sign_in(redirect(&with_next("/portal/sign-in/code", &next)), signed_in_result)
}

/// Returns a page's path with the page that follows it.
fn with_next(page: &str, next: &str) -> String {
    let query =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("{page}?{query}")
}

async fn code_page(
    portal: web::Data<Portal>,
    next: web::Query<Next>,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    match signed_in_user(&request).await? {
        Some(user) if user.passed => Ok(redirect(HOME)),
        Some(user) => Ok(code_form(&portal, &user, &next.next).await?.into_response()),
        None => Ok(redirect("/portal/sign-in")),
    }
}

pub(crate) async fn code_form(
    portal: &Portal,
    user: &SignedInUser,
    next: &str,
) -> Result<PortalPage, PortalError> {
    let challenge = portal.passkeys.ask_passkey(user).await?;
    let page = PortalPage::new("code.html", message("Confirm your identity"))
        .with("next", portal_path(next))
        .with("has_codes", user.has_codes);
    Ok(match challenge {
        Some(PasskeyChallenge { options, sealed }) => {
            page.with("options", options).with("asked", sealed.expose())
        }
        None => page.with("options", "").with("asked", ""),
    })
}

async fn verify_code(
    portal: web::Data<Portal>,
    request: HttpRequest,
    submitted: PublicForm,
) -> Result<HttpResponse, PageError> {
    let user = signed_in_user(&request).await?.filter(|user| !user.passed);
    let (fields, Some(user), Some(token)) = (submitted.0, user, token(&request)) else {
        return Ok(redirect("/portal/sign-in"));
    };
    let (code, next) = (fields.text("code"), fields.text("next"));
    let result =
        portal.accounts.verify_totp(&token, code, request_origin(&request), browsers(&request));
    match result.await {
        Ok(signed_in) => Ok(with_sign_in(redirect(&portal_path(next)), &signed_in)),
        Err(error @ (PortalError::WrongCode | PortalError::TooMany { .. })) => {
            Ok(code_form(&portal, &user, next).await?.refused(&error))
        }
        // The sign-in has expired.
        Err(PortalError::Forbidden) => Ok(redirect("/portal/sign-in")),
        Err(error) => Err(error.into()),
    }
}

async fn sign_out(
    portal: web::Data<Portal>,
    submitted: CsrfFormBeforeDuty,
) -> Result<HttpResponse, PageError> {
    portal.accounts.sign_out(&submitted.0.user).await?;
    let mut response = without_token(redirect("/portal/sign-in"));
    response.headers_mut().insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\""));
    Ok(response)
}

/// Returns the path if it is a path of the portal, otherwise the start page.
pub(crate) fn portal_path(path: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/?=&%.+".contains(&byte);
    let is_valid = path.len() <= MAX_PATH_BYTES
        && path.starts_with("/portal/")
        && !path.contains("//")
        && !path.contains("..")
        && path.bytes().all(is_allowed);
    if is_valid { path.to_owned() } else { HOME.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for own in ["/portal/audit?before=7", "/portal/sessions?find=loan+%26+7&from=2026-01-31"] {
            assert_eq!(portal_path(own), own);
        }
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
            assert_eq!(portal_path(odd), HOME, "{odd}");
        }
    }
}
