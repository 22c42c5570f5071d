//! Sign-in at an identity provider. Both directions are redirects, since the content security
//! policy permits forms to no other origin. A callback is accepted only together with the cookie
//! that was set before.

use actix_web::{HttpRequest, HttpResponse, cookie::time::Duration, web};
use domain::secret::Secret;
use ports::{
    driving::{PortalError, SignInOutcome},
    identity::AuthorizationCallback,
};
use serde::Deserialize;

use crate::{
    Portal,
    authenticated::{
        AuthenticatedBeforeDuty, browsers, cookie, request_origin, signed_in_user, with_cookie,
    },
    error::{PageError, redirect},
    methods::reading,
    reauthentication,
    sign_in::{form, portal_path, signed_in},
};

/// The cookie with the state of the authorization request.
const COOKIE: &str = "__Host-avouch-away";
const STATE_COOKIE_TTL: Duration = Duration::minutes(10);
const MAX_COOKIE_CHARS: usize = 3_000;
const MAX_PARAMETER_BYTES: usize = 4_096;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/sign-in/away", reading(redirect_to_provider))
        .route("/portal/confirm/away", reading(redirect_to_reauthenticate))
        .route("/portal/sign-in/back", reading(callback));
}

#[derive(Deserialize)]
struct ProviderSignIn {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct CallbackQuery {
    #[serde(default)]
    state: String,
    #[serde(default)]
    code: String,
}

async fn redirect_to_provider(
    portal: web::Data<Portal>,
    request: HttpRequest,
    next: web::Query<ProviderSignIn>,
) -> Result<HttpResponse, PageError> {
    match portal.identities.begin_sign_in(portal_path(&next.next), request_origin(&request)).await {
        Ok((url, state_cookie)) => {
            Ok(with_cookie(redirect(&url), COOKIE, state_cookie.expose(), STATE_COOKIE_TTL))
        }
        Err(error) => refused(&portal, &next.next, error),
    }
}

async fn redirect_to_reauthenticate(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let (url, state_cookie) = portal.identities.depart_to_confirm(&signed.0).await?;
    Ok(with_cookie(redirect(&url), COOKIE, state_cookie.expose(), STATE_COOKIE_TTL))
}

async fn callback(
    portal: web::Data<Portal>,
    request: HttpRequest,
    query: web::Query<CallbackQuery>,
) -> Result<HttpResponse, PageError> {
    let state_cookie = cookie(&request, COOKIE, MAX_COOKIE_CHARS);
    let state_cookie = state_cookie.unwrap_or_else(|| Secret::new(String::new()));
    let CallbackQuery { state, code } = query.into_inner();
    if state.len() > MAX_PARAMETER_BYTES || code.len() > MAX_PARAMETER_BYTES {
        return Err(PageError::Forged);
    }
    let callback = AuthorizationCallback { state, code: Secret::new(code) };
    let current = signed_in_user(&request).await?.filter(|user| user.passed);
    let browser = (current.clone(), browsers(&request));
    let result = portal
        .identities
        .complete_sign_in(state_cookie, callback, request_origin(&request), browser)
        .await;
    let answer = match (result, current) {
        (Ok(SignInOutcome::SignedIn(answer, next)), _) => signed_in(&answer, &next),
        (Ok(SignInOutcome::Asked(proof)), Some(user)) => {
            reauthentication::provider_authenticated(&portal, &user, &request, proof).await?
        }
        (Ok(SignInOutcome::Asked(_)), None) => redirect("/portal/sign-in"),
        (Err(error), None) => refused(&portal, "", error)?,
        (Err(error), Some(_)) => return Err(error.into()),
    };
    Ok(with_cookie(answer, COOKIE, "", Duration::ZERO))
}

fn refused(portal: &Portal, next: &str, error: PortalError) -> Result<HttpResponse, PageError> {
    match error {
        PortalError::Invalid(_) | PortalError::TooMany { .. } => {
            Ok(form(portal, next, "").refused(&error))
        }
        PortalError::NotFound(_)
        | PortalError::InvalidLink
        | PortalError::Forbidden
        | PortalError::Unconfirmed
        | PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::Password(_)
        | PortalError::Restarting
        | PortalError::Store(_) => Err(error.into()),
    }
}

/// Returns the name of the provider for the sign-in page; empty if there is none.
pub(crate) fn name(portal: &Portal) -> &str {
    portal.identities.provider().unwrap_or_default()
}
