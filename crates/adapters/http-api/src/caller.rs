//! Who makes a request: `x-api-key`, or else a Bearer token; and from which address.

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

use super::{error::ApiError, refusals::ShownKey};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Networks whose `X-Forwarded-For`, `X-Forwarded-Host` and `Forwarded` are believed: the proxies in
/// front of the service.
#[derive(Clone, Default)]
pub struct TrustedProxies(pub Networks);

/// A caller whose request was counted and admitted.
pub(super) struct Caller(pub(super) driving::Caller);

/// A caller who looks something up, and the catalogue's revision at that moment.
pub(super) struct LookupCaller(pub(super) driving::Caller, pub(super) Option<CatalogueRevision>);

/// A caller who may create, and the body of the request.
pub(super) struct CreateCaller(pub(super) driving::Caller, pub(super) Bytes);

/// A caller who asks something, and the body of the request.
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

/// Admits first; only then is the body read.
async fn with_body(
    request: &HttpRequest,
    mut payload: Payload,
    purpose: RequestPurpose,
) -> Result<(driving::Caller, Bytes), ApiError> {
    let (caller, _) = admit(request, purpose).await?;
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
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
    let gate = request.app_data::<web::Data<dyn Authenticator>>().ok_or(ApiError::NotFound)?;
    let admission = gate.authenticate(knock(request, purpose)).await?;
    let catalogue = admission.catalogue;
    Ok((admitted(request, admission)?, catalogue))
}

/// Notes the window for the headers of the answer, and whose key was refused for the log.
pub(super) fn admitted(
    request: &HttpRequest,
    admission: AuthOutcome,
) -> Result<driving::Caller, ApiError> {
    if let Some(window) = admission.window {
        request.extensions_mut().insert(window);
    }
    admission.verdict.map_err(|refusal| {
        request.extensions_mut().insert(ShownKey::new(key(request), admission.key));
        match refusal {
            AccessDenied::Unauthorized => ApiError::Unauthorized,
            AccessDenied::TooMany { retry_after } => ApiError::TooMany(retry_after),
        }
    })
}

pub(super) fn knock(request: &HttpRequest, purpose: RequestPurpose) -> RequestCredentials {
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

/// The host that somebody sent a request to. What is said of it in the place of the `Host` header
/// counts from trusted proxies alone.
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

/// The peer's address; behind trusted proxies the last address that none of them is.
pub fn address(request: &HttpRequest) -> IpAddr {
    let peer = request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip());
    let Some(trusted) = request.app_data::<TrustedProxies>() else { return peer };
    if !trusted.0.contain(peer) {
        return peer;
    }
    let forwarded = request.headers().get_all("x-forwarded-for");
    let listed: Vec<_> = forwarded.filter_map(|list| list.to_str().ok()).collect();
    let hops = listed.iter().flat_map(|list| list.split(',')).map(str::trim).rev();
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
