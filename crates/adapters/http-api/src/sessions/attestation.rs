//! `GET /partner/browser-session/{id}/attestation`

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETag, EntityTag},
    web,
};
use ports::driving::SessionService;
use utoipa::ToSchema;

use super::session_id;
use crate::{
    caller::Caller,
    error::{ApiError, ErrorBody},
    hash::{hex, sha256},
};

/// Get the attestation of a session
///
/// Returns one CBOR file that `avouch-verify` checks offline. `proofHash` of the webhook identifies
/// the attestation in it. Polls and webhooks never contain the file.
#[utoipa::path(
    get,
    path = "/partner/browser-session/{id}/attestation",
    tag = "Attestations",
    operation_id = "getAttestation",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (
            status = 200, description = "The file, with the same bytes and `ETag` each time.",
            body = PortableAttestation, content_type = "application/cbor",
        ),
        (status = 404, description = "No session of this key has this id, or it has no attestation, or the attestation was erased.", body = ErrorBody),
    ),
)]
pub(crate) async fn attestation(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let id = session_id(&path)?;
    let found = sessions.attestation(&caller, id).await?;
    let file = found.ok_or(ApiError::AttestationNotFound)?.file;
    let name = format!("attachment; filename=\"attestation-{id}.cbor\"");
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/cbor"))
        .insert_header((CONTENT_DISPOSITION, name))
        .insert_header((CACHE_CONTROL, "private, no-store"))
        .insert_header(ETag(EntityTag::new_strong(hex(&sha256(&file)))))
        .body(file))
}

/// CBOR (RFC 8949), for `avouch-verify`.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes a body that is not JSON")]
struct PortableAttestation(Vec<u8>);
