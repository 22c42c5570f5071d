//! `GET /partner/error-codes`

use actix_web::{HttpResponse, web};
use domain::error_code::{Category, ErrorCode, Retry};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::Caller, envelope::Envelope, error::ApiError, lookups::cache::ResponseCache,
    openapi::ErrorCodeName,
};

/// Error codes
///
/// The catalogue of `errorCode`: who can resolve each error, whether a new session may succeed, and
/// the texts for you and for the applicant.
#[utoipa::path(
    get,
    path = "/partner/error-codes",
    tag = "Lookups",
    operation_id = "listErrorCodes",
    responses((status = 200, description = "The catalogue.", body = Envelope<Vec<WireCode>>)),
)]
pub(crate) async fn error_codes(
    kept: web::Data<ResponseCache>,
    _: Caller,
) -> Result<HttpResponse, ApiError> {
    kept.error_codes
        .answer(|| ErrorCode::ALL.iter().copied().map(WireCode::from).collect::<Vec<_>>())
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ErrorCodeEntry)]
pub(crate) struct WireCode {
    #[schema(value_type = ErrorCodeName)]
    code: ErrorCode,
    #[schema(value_type = String, pattern = "^(applicant|platform|service|policy)$")]
    category: Category,
    retryable: bool,
    /// The text of `errorMessage`.
    message: &'static str,
    /// The text that the applicant reads.
    applicant_message: &'static str,
}

impl From<ErrorCode> for WireCode {
    fn from(code: ErrorCode) -> Self {
        Self {
            code,
            category: code.category(),
            retryable: code.retry() == Retry::Worthwhile,
            message: code.partner_text(),
            applicant_message: code.applicant_text(),
        }
    }
}
