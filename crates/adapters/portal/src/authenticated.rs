//! Authenticates requests by the sign-in cookie, and determines their origin.

use std::{future::Future, pin::Pin};

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    cookie::{Cookie, SameSite, time::Duration},
    dev::Payload,
    http::header::USER_AGENT,
    web,
};
use domain::secret::Secret;
use ports::{
    account_store::RequestOrigin,
    driving::{SignedIn, SignedInUser},
};

use crate::{Address, Portal, error::PageError, sign_in::HOME};

/// The `__Host-` prefix restricts the cookie to TLS (or this machine), to this host, and to the
/// path `/` (RFC 6265bis, section 4.1.3.2).
const COOKIE: &str = "__Host-avouch";
/// The maximum duration of a sign-in.
const SIGN_IN_COOKIE_TTL: Duration = Duration::hours(24);
/// The cookie of known browsers. It grants no access.
const BROWSERS: &str = "__Host-avouch-browser";
/// The duration for which the service knows a browser.
const BROWSER_COOKIE_TTL: Duration = Duration::days(90);
const MAX_BROWSERS_CHARS: usize = 400;
const MAX_TOKEN_CHARS: usize = 100;
const MAX_USER_AGENT_CHARS: usize = 200;

/// The function with which the server determines a request's address.
pub(crate) struct ClientAddress(pub(crate) Address);

/// The signed-in user.
pub(crate) struct Authenticated(pub(crate) SignedInUser);

impl FromRequest for Authenticated {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let user = require_sign_in(&request).await?;
            if user.required_action.is_some() {
                Err(PageError::SecondFactorRequired)
            } else {
                Ok(Self(user))
            }
        })
    }
}

/// The signed-in user, even if a second factor has still to be set up.
pub(crate) struct AuthenticatedBeforeDuty(pub(crate) SignedInUser);

impl FromRequest for AuthenticatedBeforeDuty {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { require_sign_in(&request).await.map(Self) })
    }
}

async fn require_sign_in(request: &HttpRequest) -> Result<SignedInUser, PageError> {
    let next = request.uri().path_and_query().map(ToString::to_string);
    let next = next.filter(|_| request.method().is_safe());
    let next = next.unwrap_or_else(|| HOME.to_owned());
    let user = signed_in_user(request).await?.ok_or(PageError::SignIn(next))?;
    if user.passed { Ok(user) } else { Err(PageError::Code) }
}

/// Returns the signed-in user of the request's cookie, whether or not the second factor was
/// verified.
pub(crate) async fn signed_in_user(
    request: &HttpRequest,
) -> Result<Option<SignedInUser>, PageError> {
    let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotFound)?;
    match token(request) {
        Some(token) => Ok(portal.accounts.signed_in_user(&token, request_origin(request)).await?),
        None => Ok(None),
    }
}

pub(crate) fn token(request: &HttpRequest) -> Option<Secret> {
    cookie(request, COOKIE, MAX_TOKEN_CHARS)
}

/// Returns the value of a cookie, unless it is longer than the maximum.
pub(crate) fn cookie(request: &HttpRequest, name: &str, max_chars: usize) -> Option<Secret> {
    let cookie = request.cookie(name)?;
    let value = cookie.value();
    (value.len() <= max_chars).then(|| Secret::new(value.to_owned()))
}

pub(crate) fn request_origin(request: &HttpRequest) -> RequestOrigin {
    let finder = request.app_data::<web::Data<ClientAddress>>();
    let unknown = std::net::IpAddr::from([0, 0, 0, 0]);
    let address = finder.map_or(unknown, |finder| (finder.0)(request));
    let user_agent =
        request.headers().get(USER_AGENT).and_then(|user_agent| user_agent.to_str().ok());
    RequestOrigin {
        address,
        agent: user_agent.unwrap_or_default().chars().take(MAX_USER_AGENT_CHARS).collect(),
    }
}

/// Returns the tokens by which the browser is known; empty if it is not.
pub(crate) fn browsers(request: &HttpRequest) -> Secret {
    cookie(request, BROWSERS, MAX_BROWSERS_CHARS).unwrap_or_else(|| Secret::new(String::new()))
}

/// Sets the cookies of a sign-in and of a known browser.
pub(crate) fn with_sign_in(response: HttpResponse, signed_in: &SignedIn) -> HttpResponse {
    let response = with_token(response, &signed_in.token);
    match &signed_in.browsers {
        Some(browsers) => with_cookie(response, BROWSERS, browsers.expose(), BROWSER_COOKIE_TTL),
        None => response,
    }
}

/// Sets the cookie with a sign-in's new token.
pub(crate) fn with_token(response: HttpResponse, token: &Secret) -> HttpResponse {
    with_cookie(response, COOKIE, token.expose(), SIGN_IN_COOKIE_TTL)
}

/// Deletes the sign-in cookie.
pub(crate) fn without_token(response: HttpResponse) -> HttpResponse {
    with_cookie(response, COOKIE, "", Duration::ZERO)
}

/// Sets a cookie for a duration.
pub(crate) fn with_cookie(
    mut response: HttpResponse,
    name: &'static str,
    value: &str,
    age: Duration,
) -> HttpResponse {
    let cookie = Cookie::build(name, value.to_owned())
        .path("/")
        .secure(true)
        .http_only(true)
        // `Lax`, so that a user who follows a link from another site is signed in.
        .same_site(SameSite::Lax)
        .max_age(age)
        .finish();
    if let Err(error) = response.add_cookie(&cookie) {
        tracing::error!(%error, "failed to set a cookie");
    }
    response
}
