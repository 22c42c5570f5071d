//! How a failure reads on the wire; the only place that knows status codes.

use actix_web::{
    HttpResponse, ResponseError,
    body::{BoxBody, EitherBody, MessageBody},
    dev::ServiceResponse,
    http::{StatusCode, header::CONTENT_TYPE},
    middleware::ErrorHandlerResponse,
};
use domain::request::Invalid;
use ports::{
    StoreError,
    driving::{CreateError, SessionError},
};
use serde::Serialize;

#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("{0}")]
    Invalid(Invalid),
    #[error("Unauthorized")]
    Unauthorized,
    #[error("Session not found")]
    SessionNotFound,
    #[error("Not Found")]
    NotFound,
    #[error("Internal Server Error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    status_code: u16,
    message: String,
}

impl ApiError {
    pub(super) fn into_response(self) -> HttpResponse {
        self.error_response()
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::SessionNotFound | Self::NotFound => StatusCode::NOT_FOUND,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Internal(source) = self {
            tracing::error!(error = source.as_ref(), "a request failed");
        }
        body(self.status_code(), self.to_string())
    }
}

fn body(status: StatusCode, message: String) -> HttpResponse {
    HttpResponse::build(status).json(Body { status_code: status.as_u16(), message })
}

/// Gives what the framework refused by itself (a wrong method, a body too large) our form.
#[expect(clippy::unnecessary_wraps, reason = "the middleware asks for a result")]
pub(super) fn in_our_words<B: MessageBody + 'static>(
    response: ServiceResponse<B>,
) -> actix_web::Result<ErrorHandlerResponse<B>> {
    let json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if json {
        return Ok(ErrorHandlerResponse::Response(response.map_into_left_body()));
    }
    let status = response.status();
    let message = status.canonical_reason().unwrap_or("Error").to_owned();
    let (request, old) = response.into_parts();
    let mut fresh = body(status, message);
    if let Some(allow) = old.headers().get("allow") {
        fresh.headers_mut().insert(actix_web::http::header::ALLOW, allow.clone());
    }
    let fresh: HttpResponse<EitherBody<B, BoxBody>> = fresh.map_into_right_body();
    Ok(ErrorHandlerResponse::Response(ServiceResponse::new(request, fresh)))
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Invalid(invalid) => Self::Invalid(invalid),
            CreateError::Store(error) => error.into(),
        }
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::NotFound => Self::SessionNotFound,
            error @ SessionError::Busy => Self::Internal(error.into()),
            SessionError::Store(error) => error.into(),
        }
    }
}
