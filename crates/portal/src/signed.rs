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

use crate::{Address, Portal, failure::Failure, sign_in::HOME};

/// Sent over TLS alone (or to this machine), to this host alone, to every path (RFC 6265bis,
/// section 4.1.3.2).
const COOKIE: &str = "__Host-avouch";
/// As long as the service keeps anybody signed in.
const KEPT: Duration = Duration::hours(24);
/// What a browser shows when somebody signs in there again; it opens nothing.
const BROWSERS: &str = "__Host-avouch-browser";
/// As long as the service knows a browser.
const BROWSER_KEPT: Duration = Duration::days(90);
const LONGEST_BROWSERS: usize = 400;
const LONGEST_TOKEN: usize = 100;
const LONGEST_AGENT: usize = 200;

/// How the server that the pages are part of tells who asks.
pub(crate) struct Finder(pub(crate) Address);

/// Somebody who is signed in.
pub(crate) struct Signed(pub(crate) SignedInUser);

impl FromRequest for Signed {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let visitor = anybody_signed_in(&request).await?;
            if visitor.duty.is_some() { Err(Failure::Duty) } else { Ok(Self(visitor)) }
        })
    }
}

/// Somebody who is signed in, whatever they have to do first.
pub(crate) struct SignedFirst(pub(crate) SignedInUser);

impl FromRequest for SignedFirst {
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Failure>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { anybody_signed_in(&request).await.map(Self) })
    }
}

async fn anybody_signed_in(request: &HttpRequest) -> Result<SignedInUser, Failure> {
    let back = request.uri().path_and_query().map(ToString::to_string);
    let back = back.filter(|_| request.method().is_safe());
    let back = back.unwrap_or_else(|| HOME.to_owned());
    let visitor = visitor(request).await?.ok_or(Failure::SignIn(back))?;
    if visitor.passed { Ok(visitor) } else { Err(Failure::Code) }
}

/// Who a request's cookie stands for, whether they have shown their code or not.
pub(crate) async fn visitor(request: &HttpRequest) -> Result<Option<SignedInUser>, Failure> {
    let portal = request.app_data::<web::Data<Portal>>().ok_or(Failure::NotThere)?;
    match token(request) {
        Some(token) => Ok(portal.accounts.signed_in_user(&token, whence(request)).await?),
        None => Ok(None),
    }
}

pub(crate) fn token(request: &HttpRequest) -> Option<Secret> {
    cookie(request, COOKIE, LONGEST_TOKEN)
}

/// What a browser was handed under a name, if it is no longer than it can be.
pub(crate) fn cookie(request: &HttpRequest, name: &str, longest: usize) -> Option<Secret> {
    let cookie = request.cookie(name)?;
    let value = cookie.value();
    (value.len() <= longest).then(|| Secret::new(value.to_owned()))
}

pub(crate) fn whence(request: &HttpRequest) -> RequestOrigin {
    let finder = request.app_data::<web::Data<Finder>>();
    let unknown = std::net::IpAddr::from([0, 0, 0, 0]);
    let address = finder.map_or(unknown, |finder| (finder.0)(request));
    let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    RequestOrigin {
        address,
        agent: agent.unwrap_or_default().chars().take(LONGEST_AGENT).collect(),
    }
}

/// What the browser was handed when somebody signed in there before; empty: nothing.
pub(crate) fn browsers(request: &HttpRequest) -> Secret {
    cookie(request, BROWSERS, LONGEST_BROWSERS).unwrap_or_else(|| Secret::new(String::new()))
}

/// Signs a browser in, and has it known when somebody signs in there again.
pub(crate) fn let_in(response: HttpResponse, signed_in: &SignedIn) -> HttpResponse {
    let response = remember(response, &signed_in.token);
    match &signed_in.browsers {
        Some(browsers) => hand(response, BROWSERS, browsers.expose(), BROWSER_KEPT),
        None => response,
    }
}

/// Gives a browser the token that it shows from now on.
pub(crate) fn remember(response: HttpResponse, token: &Secret) -> HttpResponse {
    hand(response, COOKIE, token.expose(), KEPT)
}

/// Has a browser forget its token.
pub(crate) fn forget(response: HttpResponse) -> HttpResponse {
    hand(response, COOKIE, "", Duration::ZERO)
}

/// Hands a browser something to be shown again, for so long.
pub(crate) fn hand(
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
