//! `POST /partner/browser-session`

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        StatusCode,
        header::{HeaderMap, HeaderName, HeaderValue},
    },
    web,
};
use domain::{
    id::SessionId,
    request::{InvalidRequest, NewSession},
    session::Status,
    webhook::wire_time,
};
use ports::driving::{CreatedSession, IdempotentRequest, SessionService};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::wire::WireLocation;
use crate::{
    caller::CreateCaller,
    envelope::{Envelope, Success},
    error::{ApiError, ErrorBody},
    hash::sha256,
    openapi::{CreateSession, SessionStatus},
    request_spans,
};

const MAX_IDEMPOTENCY_KEY_CHARS: usize = 255;
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Create a session
///
/// Returns `embedUrl`, which you show to the applicant. Repeating the request with the same
/// `Idempotency-Key` and body within 24 hours returns the same session.
#[utoipa::path(
    post,
    path = "/partner/browser-session",
    tag = "Sessions",
    operation_id = "createSession",
    request_body(content = CreateSession),
    params((
        "Idempotency-Key" = Option<String>, Header,
        description = "1 to 255 printable ASCII characters. A key creates one session.",
    )),
    responses(
        (
            status = 201, description = "Session created.", body = Envelope<Created>,
            links(
                ("get" = (
                    operation_id = "getSession",
                    parameters(("id" = "$response.body#/data/sessionId")),
                )),
                ("timeline" = (
                    operation_id = "getTimeline",
                    parameters(("id" = "$response.body#/data/sessionId")),
                )),
                ("terminate" = (
                    operation_id = "terminateSession",
                    parameters(("id" = "$response.body#/data/sessionId")),
                )),
                ("erase" = (
                    operation_id = "eraseData",
                    parameters(("id" = "$response.body#/data/sessionId")),
                )),
            ),
        ),
        (status = 400, description = "The request is invalid. `message` names each field.", body = ErrorBody),
        (status = 408, description = "The body did not arrive in time.", body = ErrorBody),
        (status = 409, description = "A request with the same `Idempotency-Key` is being processed.", body = ErrorBody),
        (status = 413, description = "The body is larger than 65,536 bytes.", body = ErrorBody),
        (status = 415, description = "The `Content-Type` is not `application/json`.", body = ErrorBody),
        (status = 422, description = "The `Idempotency-Key` was used with another body.", body = ErrorBody),
    ),
)]
pub(crate) async fn create(
    request: HttpRequest,
    sessions: web::Data<dyn SessionService>,
    CreateCaller(caller, body): CreateCaller,
) -> Result<HttpResponse, ApiError> {
    let body: Value = serde_json::from_slice(&body)
        .map_err(|_| InvalidRequest::one("the body must be valid JSON"))?;
    let idempotency_key = idempotency_key(request.headers(), &body)?;
    let created = sessions.create(&caller, NewSession::read(&body)?, idempotency_key).await?;
    let replayed = created.replayed;
    request_spans::note_created(&request, created.view.session.id);
    let mut response = Success(StatusCode::CREATED, Created::from(created)).into_response();
    if replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Identifies the request by the values of its members; their order and whitespace make no
/// difference.
fn idempotency_key(
    headers: &HeaderMap,
    body: &Value,
) -> Result<Option<IdempotentRequest>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().unwrap_or_default();
    let printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY_CHARS || !printable {
        let rule = "Idempotency-Key must be 1 to 255 printable ASCII characters";
        return Err(InvalidRequest::one(rule).into());
    }
    let request = sha256(body.to_string().as_bytes());
    Ok(Some(IdempotentRequest { key: key.to_owned(), request }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CreatedSession)]
#[expect(clippy::struct_field_names, reason = "the specification's names")]
pub(crate) struct Created {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = SessionStatus)]
    status: Status,
    embed_url: String,
    platform_id: i32,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    created_at: String,
    location: WireLocation,
    preferred_region: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_reference_id: Option<String>,
}

impl From<CreatedSession> for Created {
    fn from(creation: CreatedSession) -> Self {
        let (session, embed_url) = (creation.view.session, creation.view.embed_url);
        Self {
            session_id: session.id,
            // A replay returns the status of the first response.
            status: Status::Created,
            embed_url,
            platform_id: session.terms.platform.0,
            expires_at: wire_time(session.expires_at),
            created_at: wire_time(session.created_at),
            preferred_region: session.terms.worker_region.as_str(),
            location: session.terms.location.into(),
            external_reference_id: session.terms.external_reference,
        }
    }
}
