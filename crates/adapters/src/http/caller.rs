//! Who makes a request: `x-api-key`, or else a Bearer token.

use std::{future::Future, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header::AUTHORIZATION, web};
use ports::driving::{self, KeyCheck};

use super::error::ApiError;

/// A caller whose key was checked.
pub(super) struct Caller(pub(super) driving::Caller);

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let keys = request.app_data::<web::Data<dyn KeyCheck>>().cloned();
        let key = key(request).map(str::to_owned);
        Box::pin(async move {
            let (Some(keys), Some(key)) = (keys, key) else {
                return Err(ApiError::Unauthorized);
            };
            keys.caller(&key).await?.map(Self).ok_or(ApiError::Unauthorized)
        })
    }
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
