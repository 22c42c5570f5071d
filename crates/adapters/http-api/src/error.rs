//! How failures are represented on the wire; the only module that chooses status codes.

use actix_web::{
    Error, HttpResponse, ResponseError,
    body::BoxBody,
    dev::ServiceResponse,
    error::PayloadError,
    http::{
        StatusCode,
        header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
    },
};
use domain::request::InvalidRequest;
use ports::{
    StoreError,
    driving::{CreateError, SessionError},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::HTML;

#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("{0}")]
    Invalid(InvalidRequest),
    #[error("Unauthorized")]
    Unauthorized,
    #[error("Session not found")]
    SessionNotFound,
    #[error("Attestation not found")]
    AttestationNotFound,
    #[error("Not Found")]
    NotFound,
    /// Contains the allowed methods.
    #[error("Method Not Allowed")]
    WrongMethod(&'static str),
    #[error("Content-Type must be application/json")]
    NotJson,
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body must be at most 65536 bytes long")]
    TooLarge,
    #[error("the body could not be read")]
    Unreadable,
    #[error("{0}")]
    Conflict(&'static str),
    #[error("{0}")]
    Unprocessable(&'static str),
    /// Contains the seconds until the next request is allowed.
    #[error("Too Many Requests")]
    TooMany(i64),
    /// Like [`Self::TooMany`], but the limit is that of the contact to which links are sent.
    #[error("Too Many Requests: the receiver was sent as many links as allowed for now")]
    TooManyLinks(i64),
    #[error("Internal Server Error")]
    Panicked,
    #[error("Internal Server Error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The body of every failing request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error, example = json!({ "statusCode": 400, "message": "platformId must be a number" }))]
pub(super) struct ErrorBody {
    /// The status of the answer, once more.
    #[schema(minimum = 400, maximum = 599)]
    status_code: u16,
    /// What was wrong. Several findings are joined with `; `, each names its field.
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
            Self::SessionNotFound | Self::AttestationNotFound | Self::NotFound => {
                StatusCode::NOT_FOUND
            }
            Self::WrongMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany(_) | Self::TooManyLinks(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Internal(source) = self {
            tracing::error!(error = source.as_ref(), "a request failed");
        }
        if matches!(self, Self::Unauthorized) {
            return unauthorized();
        }
        let mut response = body(self.status_code(), self.to_string());
        let headers = response.headers_mut();
        if let Self::WrongMethod(allowed) = self {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        } else if let Self::TooMany(seconds) | Self::TooManyLinks(seconds) = self {
            headers.insert(RETRY_AFTER, HeaderValue::from(*seconds));
        }
        response
    }
}

fn body(status: StatusCode, message: String) -> HttpResponse {
    HttpResponse::build(status).json(ErrorBody { status_code: status.as_u16(), message })
}

/// A constant body, because clients without a valid key may send many requests.
fn unauthorized() -> HttpResponse {
    let body = r#"{"statusCode":401,"message":"Unauthorized"}"#;
    let mut response = HttpResponse::with_body(StatusCode::UNAUTHORIZED, BoxBody::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Gives responses of the framework (a body that is too large, an extractor's error) the form of
/// our errors; its own are plain text.
pub(super) fn with_error_body(response: ServiceResponse) -> ServiceResponse {
    let status = response.status();
    let has_own_form = || {
        let content_type = response.headers().get(CONTENT_TYPE);
        content_type
            .is_some_and(|content_type| content_type == "application/json" || content_type == HTML)
    };
    let is_portal = response.request().path().starts_with("/portal");
    if !(status.is_client_error() || status.is_server_error()) || has_own_form() || is_portal {
        return response;
    }
    let message = status.canonical_reason().unwrap_or("Error").to_owned();
    let (request, original) = response.into_parts();
    let mut replacement = body(status, message);
    if let Some(allow) = original.headers().get(ALLOW) {
        replacement.headers_mut().insert(ALLOW, allow.clone());
    }
    ServiceResponse::new(request, replacement)
}

impl From<InvalidRequest> for ApiError {
    fn from(invalid: InvalidRequest) -> Self {
        Self::Invalid(invalid)
    }
}

/// Maps the reasons for which a body could not be read.
impl From<&Error> for ApiError {
    fn from(error: &Error) -> Self {
        match error.as_error::<PayloadError>() {
            Some(PayloadError::Overflow) => Self::TooLarge,
            _ => Self::Unreadable,
        }
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
            CreateError::OtherRequest => {
                Self::Unprocessable("Idempotency-Key was used before with another request")
            }
            CreateError::InFlight => {
                Self::Conflict("a request with this Idempotency-Key is being carried out")
            }
            CreateError::TooManyLinks { retry_after } => Self::TooManyLinks(retry_after),
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
