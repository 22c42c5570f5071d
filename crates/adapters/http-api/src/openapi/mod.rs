//! The API description, generated from the handlers: `GET /v1/openapi.json`, and `/docs` to read
//! it.

mod examples;
mod names;
mod request;

use std::sync::Arc;

use actix_web::{
    FromRequest as _, HttpRequest, HttpResponse, Route,
    http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    web,
};
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
use utoipa_swagger_ui::Config;

pub(super) use self::{
    names::{ActionKind, AttestationType, ErrorCodeName, RecordingStatus, SessionStatus},
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
        description = "Account-verification sessions: create one, show its `embedUrl` to the \
            applicant, learn the result by polling or by webhook.\n\nEvery answer carries \
            `X-Request-Id` and the three `X-RateLimit-*` headers.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/v1")),
    security(("apiKey" = []), ("bearer" = [])),
    tags(
        (name = "Sessions", description = "One applicant proving one account"),
        (name = "Lookups", description = "What a session can be created with"),
    ),
    paths(
        sessions::create::create,
        sessions::get::get,
        sessions::list::list,
        sessions::recording::recording,
        sessions::attestation::attestation,
        sessions::terminate::terminate,
        sessions::timeline::timeline,
        sessions::notify::resend,
        sessions::erase::erase,
        attestations::verify,
        lookups::platforms::platforms,
        lookups::channels::notification_platforms,
        lookups::templates::email_templates,
        lookups::countries::countries,
        lookups::error_codes::error_codes,
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
    }
}

/// Adds the errors that occur before a request reaches its handler, and the headers of responses.
fn complete(operation: &mut Operation) {
    let failures = [
        ("401", "The API key is missing, unknown, revoked or expired."),
        ("429", "The rate limit is exceeded; `Retry-After` says when to come again."),
        ("500", "The service failed. Nothing of the cause is told; quote the request id."),
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
        add("X-Request-Id", Type::String, "Names the request in the service's log.");
        add("X-RateLimit-Limit", Type::Integer, "Requests in a window.");
        add("X-RateLimit-Remaining", Type::Integer, "Requests left in this window.");
        add("X-RateLimit-Reset", Type::Integer, "Unix time at which a new window begins.");
        if status == "429" {
            add("Retry-After", Type::Integer, "Seconds until a request is served again.");
        }
    }
}

fn example(operation: &str, status: &str) -> Option<Value> {
    if status.starts_with('2') {
        let data = examples::data(operation)?;
        return Some(json!({ "status": "success", "data": data }));
    }
    let code: u16 = status.parse().ok()?;
    Some(json!({ "statusCode": code, "message": examples::message(operation, status) }))
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

/// Serves `GET /v1/openapi.json`; the document is serialized once. It needs no key, but is counted
/// like every request of the API.
pub(super) fn served() -> Route {
    // A document that consists of our own types can be serialized.
    let json: web::Bytes = document().to_json().unwrap_or_default().into();
    reading().to(move |request: HttpRequest| {
        let json = json.clone();
        async move {
            match Caller::extract(&request).await {
                Ok(_) | Err(ApiError::Unauthorized) => {
                    Ok(HttpResponse::Ok().content_type("application/json").body(json))
                }
                Err(refused) => Err(refused),
            }
        }
    })
}

/// Serves `/docs`, a viewer for the document.
pub(super) fn viewer(config: &mut web::ServiceConfig) {
    config
        .service(web::redirect("/docs", "/docs/"))
        .route("/docs/{file:.*}", web::get().to(file_of_viewer));
}

/// The viewer loads the document and calls this service; it must not be embedded in a frame.
const VIEWER_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' \
     'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

async fn file_of_viewer(file: web::Path<String>) -> HttpResponse {
    let config = Arc::new(Config::from("/v1/openapi.json"));
    match utoipa_swagger_ui::serve(&file, config) {
        Ok(Some(found)) => HttpResponse::Ok()
            .content_type(found.content_type)
            .insert_header((CONTENT_SECURITY_POLICY, VIEWER_POLICY))
            .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .body(found.bytes.into_owned()),
        Ok(None) | Err(_) => HttpResponse::NotFound().finish(),
    }
}
