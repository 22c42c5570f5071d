//! `POST /partner/attestations/verify`

use std::collections::BTreeMap;

use actix_web::web;
use domain::{id::SessionId, request::read_comparison};
use ports::driving::{Coverage, FieldMatch, SessionError, SessionService};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    caller::JsonCaller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    methods::wrong_method,
};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/partner/attestations/verify")
            .route(web::post().to(verify))
            .default_service(wrong_method("POST")),
    );
}

/// Compare data with an attestation
///
/// Compares data with an attestation, field by field. `matches` covers the attested fields only;
/// `coverage` says whether you gave others too. A field that is `not_attested` may have any value.
/// To verify an attestation without relying on the service, use `avouch-verify`.
#[utoipa::path(
    post,
    path = "/partner/attestations/verify",
    tag = "Attestations",
    operation_id = "verifyAttestation",
    request_body(content = Comparison),
    responses(
        (status = 200, description = "The result of the comparison.", body = Envelope<Compared>),
        (status = 400, description = "The request is invalid. `message` names each field.", body = ErrorBody),
        (status = 404, description = "No attestation of this key's sessions has this hash, or it was erased.", body = ErrorBody),
        (status = 408, description = "The body did not arrive in time.", body = ErrorBody),
        (status = 413, description = "The body is larger than 65,536 bytes.", body = ErrorBody),
        (status = 415, description = "The `Content-Type` is not `application/json`.", body = ErrorBody),
    ),
)]
pub(crate) async fn verify(
    sessions: web::Data<dyn SessionService>,
    JsonCaller(caller, body): JsonCaller,
) -> Result<Success<Compared>, ApiError> {
    let (proof, data) = read_comparison(&body)?;
    let found = sessions.compare(&caller, &proof, &data).await.map_err(|error| match error {
        SessionError::NotFound => ApiError::AttestationNotFound,
        error @ (SessionError::Busy | SessionError::ProductionKey | SessionError::Store(_)) => {
            error.into()
        }
    })?;
    let fields = found.fields.into_iter().map(|(field, held)| (field, word(held)));
    Ok(ok(Compared {
        session_id: found.session,
        matches: found.matches,
        coverage: found.coverage.into(),
        fields: fields.collect(),
    }))
}

const fn word(held: FieldMatch) -> &'static str {
    match held {
        FieldMatch::Matches => "matches",
        FieldMatch::Differs => "differs",
        FieldMatch::Missing => "missing",
        FieldMatch::NotAttested => "not_attested",
    }
}

/// What is to be compared.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what is read member by member")]
pub(crate) struct Comparison {
    /// From the webhook: 64 lower-case hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    proof_hash: String,
    /// As received in a poll or webhook; up to 100 fields.
    extracted_data: Map<String, Value>,
}

/// What `matches` covers: `all_given_fields` where every given field is attested,
/// `attested_fields_only` where at least one is not.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AttestationCoverage)]
enum WireCoverage {
    AllGivenFields,
    AttestedFieldsOnly,
}

impl From<Coverage> for WireCoverage {
    fn from(coverage: Coverage) -> Self {
        match coverage {
            Coverage::AllGivenFields => Self::AllGivenFields,
            Coverage::AttestedFieldsOnly => Self::AttestedFieldsOnly,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Compared {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    /// Whether every attested field was given, with the value that was attested. Covers attested
    /// fields only: it can be true while a field that is `not_attested` was altered.
    matches: bool,
    coverage: WireCoverage,
    /// By field: `matches`, `differs`, `missing` (attested, not given) or `not_attested` (given, and
    /// not proved by the attestation).
    fields: BTreeMap<String, &'static str>,
}
