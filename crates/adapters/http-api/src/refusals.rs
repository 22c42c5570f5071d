//! Logs refused requests with the caller's identity as far as it is known, but never with a key or
//! a token.

use actix_web::{
    HttpMessage as _, HttpRequest, body::BoxBody, dev::ServiceResponse, http::StatusCode, web,
};
use domain::{api_key::Environment, id::ApiKeyId, rate::network};
use ports::refusals::{RefusalClass as Class, RefusalLog};
use tracing::field::display;

use super::{caller::address, measure::route};

/// The API key of a refused request.
pub(super) struct ShownKey {
    /// The record of a known key, even if the key is revoked or expired.
    id: Option<ApiKeyId>,
    /// The prefix of the keys of its environment.
    prefix: Option<&'static str>,
}

impl ShownKey {
    pub(super) fn new(text: Option<&str>, id: Option<ApiKeyId>) -> Self {
        let prefixes =
            [Environment::Development, Environment::Production].map(Environment::key_prefix);
        let prefix =
            text.and_then(|text| prefixes.into_iter().find(|prefix| text.starts_with(prefix)));
        Self { id, prefix }
    }
}

/// Logs and counts a response that refuses. A 404 is only counted, since a mistyped path cannot be
/// distinguished from a probe.
pub(super) fn record(response: &ServiceResponse<BoxBody>) {
    let status = response.status();
    let class = match status {
        StatusCode::UNAUTHORIZED => Class::Key,
        StatusCode::TOO_MANY_REQUESTS => Class::Limit,
        StatusCode::FORBIDDEN => forbidden(response),
        StatusCode::NOT_FOUND => {
            metrics::counter!("avouch_refused_total", "class" => "absent").increment(1);
            return;
        }
        _ => return,
    };
    let request = response.request();
    if !may_log(request, class) {
        return;
    }
    let (method, route, client) = (request.method(), route(request.path()), client(request));
    let extensions = request.extensions();
    let key = extensions.get::<ShownKey>();
    let id = key.and_then(|key| key.id).map(display);
    let prefix = key.and_then(|key| key.prefix);
    let (class, status) = (class.as_str(), status.as_u16());
    tracing::warn!(
        class, %method, route, status, client.network = %client, key.id = id, key.prefix = prefix,
        "a request was refused"
    );
}

/// Counts a refusal, and returns whether it may be logged on a line of its own.
pub(super) fn may_log(request: &HttpRequest, class: Class) -> bool {
    let log = request.app_data::<web::Data<dyn RefusalLog>>();
    log.is_none_or(|log| log.may_log(class))
}

fn forbidden(response: &ServiceResponse<BoxBody>) -> Class {
    // A handler that knows the class stores it in the response's extensions.
    let class = response.response().extensions().get::<Class>().copied();
    class.unwrap_or_else(|| {
        let is_stream = response.request().path().ends_with("/stream");
        if is_stream { Class::Origin } else { Class::Forbidden }
    })
}

/// Returns the network of a request's client, by which limits count.
pub(super) fn client(request: &HttpRequest) -> std::net::IpAddr {
    network(address(request))
}
