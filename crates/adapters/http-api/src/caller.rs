//! Extracts the caller of a request: the API key (`x-api-key`, otherwise a Bearer token) and the
//! client's address.

use std::{future::Future, net::IpAddr, pin::Pin, time::Duration};

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest,
    dev::Payload,
    http::{
        header::{AUTHORIZATION, CONTENT_TYPE, HOST},
        uri::Authority,
    },
    web::{self, Bytes},
};
use domain::{egress::Networks, secret::Secret};
use ports::{
    catalogue::CatalogueRevision,
    driving::{self, AccessDenied, AuthOutcome, Authenticator, RequestCredentials, RequestPurpose},
};

use super::{error::ApiError, refusals::ShownKey, request_spans};

/// The time within which a body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// The networks of the reverse proxies, whose `X-Forwarded-For`, `X-Forwarded-Host` and `Forwarded`
/// headers are trusted.
#[derive(Clone, Default)]
pub struct TrustedProxies(pub Networks);

/// A caller whose request was authenticated and counted.
pub(super) struct Caller(pub(super) driving::Caller);

/// The caller of a lookup, and the catalogue's revision at that moment.
pub(super) struct LookupCaller(pub(super) driving::Caller, pub(super) Option<CatalogueRevision>);

/// A caller that may create sessions, and the body of the request.
pub(super) struct CreateCaller(pub(super) driving::Caller, pub(super) Bytes);

/// A caller of an operation with a JSON body, and the body of the request.
pub(super) struct JsonCaller(pub(super) driving::Caller, pub(super) Bytes);

type Extracted<T> = Pin<Box<dyn Future<Output = Result<T, ApiError>>>>;

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            admit(&request, RequestPurpose::Any).await.map(|(caller, _)| Self(caller))
        })
    }
}

impl FromRequest for LookupCaller {
    type Error = ApiError;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            admit(&request, RequestPurpose::Any)
                .await
                .map(|(caller, catalogue)| Self(caller, catalogue))
        })
    }
}

impl FromRequest for CreateCaller {
    type Error = ApiError;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let (caller, body) = with_body(&request, payload, RequestPurpose::Creation).await?;
            Ok(Self(caller, body))
        })
    }
}

impl FromRequest for JsonCaller {
    type Error = ApiError;
    type Future = Extracted<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let (caller, body) = with_body(&request, payload, RequestPurpose::Any).await?;
            Ok(Self(caller, body))
        })
    }
}

/// Authenticates the request before it reads the body.
async fn with_body(
    request: &HttpRequest,
    mut payload: Payload,
    purpose: RequestPurpose,
) -> Result<(driving::Caller, Bytes), ApiError> {
    let (caller, _) = admit(request, purpose).await?;
    let media_type =
        request.headers().get(CONTENT_TYPE).and_then(|media_type| media_type.to_str().ok());
    let media_type =
        media_type.and_then(|media_type| media_type.split(';').next()).unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::NotJson);
    }
    let body = Bytes::from_request(request, &mut payload);
    match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok((caller, body)),
        Ok(Err(error)) => Err(ApiError::from(&error)),
        Err(_) => Err(ApiError::TooSlow),
    }
}

async fn admit(
    request: &HttpRequest,
    purpose: RequestPurpose,
) -> Result<(driving::Caller, Option<CatalogueRevision>), ApiError> {
    let authenticator =
        request.app_data::<web::Data<dyn Authenticator>>().ok_or(ApiError::NotFound)?;
    let outcome = authenticator.authenticate(credentials(request, purpose)).await?;
    let catalogue = outcome.catalogue;
    Ok((admitted(request, outcome)?, catalogue))
}

/// Stores the rate window for the response's headers and, after a refusal, the key for the log.
pub(super) fn admitted(
    request: &HttpRequest,
    outcome: AuthOutcome,
) -> Result<driving::Caller, ApiError> {
    if let Some(window) = outcome.window {
        request.extensions_mut().insert(window);
    }
    match outcome.result {
        Ok(caller) => {
            request_spans::note_admitted(request);
            Ok(caller)
        }
        Err(refusal) => {
            request.extensions_mut().insert(ShownKey::new(key(request), outcome.key));
            Err(match refusal {
                AccessDenied::Unauthorized => ApiError::Unauthorized,
                AccessDenied::TooMany { retry_after } => ApiError::TooMany(retry_after),
            })
        }
    }
}

pub(super) fn credentials(request: &HttpRequest, purpose: RequestPurpose) -> RequestCredentials {
    let key = key(request).map(|key| Secret::new(key.to_owned()));
    RequestCredentials { key, address: address(request), purpose }
}

fn key(request: &HttpRequest) -> Option<&str> {
    let headers = request.headers();
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok().filter(|key| !key.is_empty());
    }
    let (scheme, key) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let key = key.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !key.is_empty()).then_some(key)
}

/// Returns the host that a request was sent to. Headers that replace `Host` are used only if they
/// come from a trusted proxy.
pub(super) fn host(request: &HttpRequest) -> String {
    let trusted = request.app_data::<TrustedProxies>();
    let peer = request.peer_addr().map(|peer| peer.ip());
    if trusted.zip(peer).is_some_and(|(trusted, peer)| trusted.0.contain(peer)) {
        return request.connection_info().host().to_owned();
    }
    let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(Authority::as_str);
    named.or(authority).unwrap_or_default().to_owned()
}

/// Returns the peer's address or, behind trusted proxies, the last address that is not one of them.
pub fn address(request: &HttpRequest) -> IpAddr {
    let peer = request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip());
    let Some(trusted) = request.app_data::<TrustedProxies>() else { return peer };
    if !trusted.0.contain(peer) {
        return peer;
    }
    let forwarded = request.headers().get_all("x-forwarded-for");
    let lists: Vec<_> = forwarded.filter_map(|list| list.to_str().ok()).collect();
    let hops = lists.iter().flat_map(|list| list.split(',')).map(str::trim).rev();
    let mut last = peer;
    for hop in hops {
        let Ok(hop) = hop.parse() else { break };
        last = hop;
        if !trusted.0.contain(hop) {
            break;
        }
    }
    last
}
