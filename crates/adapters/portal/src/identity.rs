//! Signing in by a provider of identities. Both ways are links: the policy of our pages lets no
//! form lead elsewhere. What comes back counts with the cookie that went out alone.

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
        AuthenticatedBeforeDuty, browsers, cookie, request_origin, visitor, with_cookie,
    },
    error::{PageError, see},
    reauthentication,
    sign_in::{form, inside, signed_in},
};

/// Kept while somebody is away.
const COOKIE: &str = "__Host-avouch-away";
const AWAY: Duration = Duration::minutes(10);
const LONGEST_COOKIE: usize = 3_000;
const LONGEST: usize = 4_096;

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/portal/sign-in/away", web::get().to(depart))
        .route("/portal/confirm/away", web::get().to(depart_to_confirm))
        .route("/portal/sign-in/back", web::get().to(arrive));
}

#[derive(Deserialize)]
struct ProviderSignIn {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct Back {
    #[serde(default)]
    state: String,
    #[serde(default)]
    code: String,
}

async fn depart(
    portal: web::Data<Portal>,
    request: HttpRequest,
    next: web::Query<ProviderSignIn>,
) -> Result<HttpResponse, PageError> {
    match portal.identities.begin_sign_in(inside(&next.next), request_origin(&request)).await {
        Ok((url, kept)) => Ok(with_cookie(see(&url), COOKIE, kept.expose(), AWAY)),
        Err(error) => refused(&portal, &next.next, error),
    }
}

async fn depart_to_confirm(
    portal: web::Data<Portal>,
    signed: AuthenticatedBeforeDuty,
) -> Result<HttpResponse, PageError> {
    let (url, kept) = portal.identities.depart_to_confirm(&signed.0).await?;
    Ok(with_cookie(see(&url), COOKIE, kept.expose(), AWAY))
}

async fn arrive(
    portal: web::Data<Portal>,
    request: HttpRequest,
    back: web::Query<Back>,
) -> Result<HttpResponse, PageError> {
    let kept = cookie(&request, COOKIE, LONGEST_COOKIE);
    let kept = kept.unwrap_or_else(|| Secret::new(String::new()));
    let Back { state, code } = back.into_inner();
    if state.len() > LONGEST || code.len() > LONGEST {
        return Err(PageError::Forged);
    }
    let arrival = AuthorizationCallback { state, code: Secret::new(code) };
    let own = visitor(&request).await?.filter(|visitor| visitor.passed);
    let browser = (own.clone(), browsers(&request));
    let arrived =
        portal.identities.complete_sign_in(kept, arrival, request_origin(&request), browser).await;
    let answer = match (arrived, own) {
        (Ok(SignInOutcome::SignedIn(answer, next)), _) => signed_in(&answer, &next),
        (Ok(SignInOutcome::Asked(asked)), Some(visitor)) => {
            reauthentication::asked_there(&portal, &visitor, &request, asked).await?
        }
        (Ok(SignInOutcome::Asked(_)), None) => see("/portal/sign-in"),
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
        | PortalError::Forbidden
        | PortalError::Unconfirmed
        | PortalError::WrongPassword
        | PortalError::PasswordRanOut
        | PortalError::WrongCode
        | PortalError::Password(_)
        | PortalError::Store(_) => Err(error.into()),
    }
}

/// What the sign-in page calls the provider; empty: there is none.
pub(crate) fn name(portal: &Portal) -> &str {
    portal.identities.provider().unwrap_or_default()
}
