//! The API description, generated from the handlers: `GET /v1/openapi.json`, and a page of the
//! documentation for people.

mod examples;
mod names;
mod reference;
mod request;
mod webhooks;

use std::sync::LazyLock;

use actix_web::{FromRequest as _, HttpRequest, HttpResponse, Route, web};
use serde_json::{Value, json};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        self, RefOr, Response,
        header::HeaderBuilder,
        path::Operation,
        schema::{ObjectBuilder, Type},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

pub(super) use self::{
    names::{
        ActionKind, AttestationType, ErrorCodeName, FailureCodeName, RETRY_ACTION, RecordingStatus,
        SessionStatus,
    },
    reference::reference,
    request::CreateSession,
};
use super::{
    attestations, caller::Caller, error, error::ApiError, lookups, methods::reading, sessions,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Avouch partner API",
        version = "1.0.0",
        description = "Verify that an applicant owns an account on a platform: create a session, \
            show its `embedUrl` to the applicant, and receive the result by webhook or by \
            polling.\n\nEvery response has `X-Request-Id` and the three `X-RateLimit-*` headers.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/v1")),
    security(("apiKey" = []), ("bearer" = [])),
    tags(
        (name = "Sessions", description = "A session verifies one account of one applicant."),
        (name = "Webhooks", description = "Requests that the service sends to your endpoint."),
        (name = "Lookups", description = "Values that a session can be created with."),
        (name = "Attestations", description = "Proof of where a session's data came from."),
    ),
    paths(
        sessions::create::create,
        sessions::get::get,
        sessions::list::list,
        sessions::terminate::terminate,
        sessions::timeline::timeline,
        sessions::notify::resend,
        sessions::recording::recording,
        sessions::erase::erase,
        sessions::test_clock::advance,
        lookups::platforms::platforms,
        lookups::channels::notification_platforms,
        lookups::templates::email_templates,
        lookups::countries::countries,
        lookups::error_codes::error_codes,
        sessions::attestation::attestation,
        attestations::verify,
    ),
    components(schemas(error::ErrorBody)),
    modifiers(&Common),
)]
struct Description;

/// Adds what is common to all operations: credentials, headers, and the errors that any of them can
/// return.
struct Common;

impl Modify for Common {
    fn modify(&self, api: &mut openapi::OpenApi) {
        let components = api.components.get_or_insert_default();
        let key = ApiKey::Header(ApiKeyValue::new("x-api-key"));
        components.add_security_scheme("apiKey", SecurityScheme::ApiKey(key));
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        for item in api.paths.paths.values_mut() {
            let operations = [&mut item.get, &mut item.post, &mut item.delete];
            operations.into_iter().flatten().for_each(complete);
        }
        webhooks::describe(api);
    }
}

/// Adds the errors that occur before a request reaches its handler, and the headers of responses.
fn complete(operation: &mut Operation) {
    let failures = [
        ("401", "The API key is missing, unknown, revoked or expired."),
        ("429", "The rate limit is exceeded. Wait for the seconds in `Retry-After`."),
        ("500", "The service failed. Retry, and quote the request id if it happens again."),
    ];
    let responses = &mut operation.responses.responses;
    for (status, description) in failures {
        responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(failure(description)));
    }
    let name = operation.operation_id.clone().unwrap_or_default();
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        for content in response.content.values_mut() {
            if let RefOr::T(content) = content {
                content.example = example(&name, status);
            }
        }
        let header = |kind, text: &str| {
            let schema = ObjectBuilder::new().schema_type(kind).build();
            HeaderBuilder::new().schema(Some(schema)).description(Some(text)).build()
        };
        let mut add = |name: &str, kind, text| {
            response.headers.entry(name.to_owned()).or_insert_with(|| RefOr::T(header(kind, text)));
        };
        add("X-Request-Id", Type::String, "Identifies the request in the service's log.");
        add("X-RateLimit-Limit", Type::Integer, "Requests allowed in a window.");
        add("X-RateLimit-Remaining", Type::Integer, "Requests left in this window.");
        add("X-RateLimit-Reset", Type::Integer, "Unix time at which the window resets.");
        if status == "429" {
            add("Retry-After", Type::Integer, "Seconds until the next request is allowed.");
        }
    }
}

fn example(operation: &str, status: &str) -> Option<Value> {
    if status.starts_with('2') {
        let data = examples::data(operation)?;
        return Some(json!({ "status": "success", "data": data }));
    }
    examples::failure(operation, status)
}

fn failure(description: &str) -> Response {
    let body = utoipa::openapi::Ref::from_schema_name("Error");
    let content = openapi::ContentBuilder::new().schema(Some(body)).build();
    openapi::ResponseBuilder::new()
        .description(description)
        .content("application/json", content)
        .build()
}

/// Returns the document as it is served.
pub(super) fn document() -> openapi::OpenApi {
    Description::openapi()
}

/// The document as JSON. One that consists of our own types can be serialized.
static JSON: LazyLock<web::Bytes> =
    LazyLock::new(|| document().to_json().unwrap_or_default().into());

/// Serves `GET /v1/openapi.json`. It needs no key, but is counted like every request of the API.
pub(super) fn served() -> Route {
    reading().to(|request: HttpRequest| async move {
        match Caller::extract(&request).await {
            Ok(_) | Err(ApiError::Unauthorized) => {
                Ok(HttpResponse::Ok().content_type("application/json").body(JSON.clone()))
            }
            Err(refused) => Err(refused),
        }
    })
}
