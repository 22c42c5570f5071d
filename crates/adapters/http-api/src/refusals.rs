//! Requests that were refused, in the log: whose they were as far as it is known, and never a key or
//! a token.

use actix_web::{
    HttpMessage as _, HttpRequest, body::BoxBody, dev::ServiceResponse, http::StatusCode, web,
};
use domain::{api_key::Environment, id::ApiKeyId, rate::network};
use ports::refusals::{RefusalClass as Class, RefusalLog};
use tracing::field::display;

use super::{caller::address, measure::route};

/// The key of a request that was refused.
pub(super) struct ShownKey {
    /// The record of a key that is known, if it opens nothing any more too.
    id: Option<ApiKeyId>,
    /// What every key of its environment begins with.
    prefix: Option<&'static str>,
}

impl ShownKey {
    pub(super) fn new(text: Option<&str>, id: Option<ApiKeyId>) -> Self {
        let known =
            [Environment::Development, Environment::Production].map(Environment::key_prefix);
        let prefix = text.and_then(|text| known.into_iter().find(|known| text.starts_with(known)));
        Self { id, prefix }
    }
}

/// Notes an answer that refuses. What is not there is counted alone: it is refused as often as it is
/// mistyped, and nothing tells the one from the other.
pub(super) fn note(response: &ServiceResponse<BoxBody>) {
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

/// Counts a refusal, and returns whether it may have a log line of its own.
pub(super) fn may_log(request: &HttpRequest, class: Class) -> bool {
    let log = request.app_data::<web::Data<dyn RefusalLog>>();
    log.is_none_or(|log| log.may_log(class))
}

fn forbidden(response: &ServiceResponse<BoxBody>) -> Class {
    // A handler that knows better says so in the response's extensions.
    let named = response.response().extensions().get::<Class>().copied();
    named.unwrap_or_else(|| {
        let is_stream = response.request().path().ends_with("/stream");
        if is_stream { Class::Origin } else { Class::Forbidden }
    })
}

/// The network that a request comes from, as limits count it.
pub(super) fn client(request: &HttpRequest) -> std::net::IpAddr {
    network(address(request))
}
