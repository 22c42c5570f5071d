//! Why the shop's API refuses a request.

use actix_web::{HttpResponse, ResponseError, http::StatusCode};
use serde_json::json;

/// The text of a refusal is what the API answers as `error`.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("csrf")]
    Csrf,
    #[error("signed_out")]
    SignedOut,
    /// The sign-in is not the one that the session began.
    #[error("state")]
    State,
    #[error("code")]
    Code,
    #[error("cursor")]
    Cursor,
}

impl ResponseError for Refusal {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Csrf => StatusCode::FORBIDDEN,
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::State | Self::Code | Self::Cursor => StatusCode::BAD_REQUEST,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(json!({ "error": self.to_string() }))
    }
}
