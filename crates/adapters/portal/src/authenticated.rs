//! Who asks: the cookie of whoever is signed in, and where a request comes from.

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

/// Sent over TLS alone (or to this machine), to this host alone, to every path (RFC 6265bis,
/// section 4.1.3.2).
const COOKIE: &str = "__Host-avouch";
/// As long as the service keeps anybody signed in.
const SIGN_IN_COOKIE_TTL: Duration = Duration::hours(24);
/// What a browser shows when somebody signs in there again; it opens nothing.
const BROWSERS: &str = "__Host-avouch-browser";
/// As long as the service knows a browser.
const BROWSER_COOKIE_TTL: Duration = Duration::days(90);
const MAX_BROWSERS_CHARS: usize = 400;
const MAX_TOKEN_CHARS: usize = 100;
const MAX_USER_AGENT_CHARS: usize = 200;

/// How the server that the pages are part of tells who asks.
pub(crate) struct ClientAddress(pub(crate) Address);

/// Somebody who is signed in.
pub(crate) struct Authenticated(pub(crate) SignedInUser);

impl FromRequest for Authenticated {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let visitor = anybody_signed_in(&request).await?;
            if visitor.duty.is_some() { Err(PageError::Duty) } else { Ok(Self(visitor)) }
        })
    }
}

/// Somebody who is signed in, whatever they have to do first.
pub(crate) struct AuthenticatedBeforeDuty(pub(crate) SignedInUser);

impl FromRequest for AuthenticatedBeforeDuty {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { anybody_signed_in(&request).await.map(Self) })
    }
}

async fn anybody_signed_in(request: &HttpRequest) -> Result<SignedInUser, PageError> {
    let back = request.uri().path_and_query().map(ToString::to_string);
    let back = back.filter(|_| request.method().is_safe());
    let back = back.unwrap_or_else(|| HOME.to_owned());
    let visitor = visitor(request).await?.ok_or(PageError::SignIn(back))?;
    if visitor.passed { Ok(visitor) } else { Err(PageError::Code) }
}

/// Who a request's cookie stands for, whether they have shown their code or not.
pub(crate) async fn visitor(request: &HttpRequest) -> Result<Option<SignedInUser>, PageError> {
    let portal = request.app_data::<web::Data<Portal>>().ok_or(PageError::NotThere)?;
    match token(request) {
        Some(token) => Ok(portal.accounts.signed_in_user(&token, request_origin(request)).await?),
        None => Ok(None),
    }
}

pub(crate) fn token(request: &HttpRequest) -> Option<Secret> {
    cookie(request, COOKIE, MAX_TOKEN_CHARS)
}

/// What a browser was handed under a name, if it is no longer than it can be.
pub(crate) fn cookie(request: &HttpRequest, name: &str, longest: usize) -> Option<Secret> {
    let cookie = request.cookie(name)?;
    let value = cookie.value();
    (value.len() <= longest).then(|| Secret::new(value.to_owned()))
}

pub(crate) fn request_origin(request: &HttpRequest) -> RequestOrigin {
    let finder = request.app_data::<web::Data<ClientAddress>>();
    let unknown = std::net::IpAddr::from([0, 0, 0, 0]);
    let address = finder.map_or(unknown, |finder| (finder.0)(request));
    let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    RequestOrigin {
        address,
        agent: agent.unwrap_or_default().chars().take(MAX_USER_AGENT_CHARS).collect(),
    }
}

/// What the browser was handed when somebody signed in there before; empty: nothing.
pub(crate) fn browsers(request: &HttpRequest) -> Secret {
    cookie(request, BROWSERS, MAX_BROWSERS_CHARS).unwrap_or_else(|| Secret::new(String::new()))
}

/// Signs a browser in, and has it known when somebody signs in there again.
pub(crate) fn with_sign_in(response: HttpResponse, signed_in: &SignedIn) -> HttpResponse {
    let response = with_token(response, &signed_in.token);
    match &signed_in.browsers {
        Some(browsers) => with_cookie(response, BROWSERS, browsers.expose(), BROWSER_COOKIE_TTL),
        None => response,
    }
}

/// Gives a browser the token that it shows from now on.
pub(crate) fn with_token(response: HttpResponse, token: &Secret) -> HttpResponse {
    with_cookie(response, COOKIE, token.expose(), SIGN_IN_COOKIE_TTL)
}

/// Has a browser forget its token.
pub(crate) fn without_token(response: HttpResponse) -> HttpResponse {
    with_cookie(response, COOKIE, "", Duration::ZERO)
}

/// Hands a browser something to be shown again, for so long.
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
        // A link elsewhere to a page of ours finds its reader signed in.
        .same_site(SameSite::Lax)
        .max_age(age)
        .finish();
    if let Err(error) = response.add_cookie(&cookie) {
        tracing::error!(%error, "a cookie could not be set");
    }
    response
}
