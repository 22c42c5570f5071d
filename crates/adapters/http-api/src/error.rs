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
    web::Bytes,
};
use domain::request::InvalidRequest;
use ports::{
    StoreError,
    driving::{CreateError, SessionError},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{HTML, failure_code::FailureCode, openapi::FailureCodeName};

#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("{0}")]
    Invalid(InvalidRequest),
    #[error("Unauthorized")]
    Unauthorized,
    #[error("{0}")]
    Forbidden(&'static str),
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
    /// The request cannot be served in the present state of what it is about.
    #[error("{1}")]
    Conflict(FailureCode, &'static str),
    #[error("Idempotency-Key was used before with another request")]
    IdempotencyKeyReused,
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
#[schema(as = Error, example = json!({
    "statusCode": 400,
    "message": "platformId must be a number",
    "code": "INVALID_REQUEST",
    "docUrl": "https://avouch.example/docs/errors.html#invalid_request",
}))]
pub(super) struct ErrorBody {
    /// The HTTP status of the response.
    #[schema(minimum = 400, maximum = 599)]
    status_code: u16,
    /// What was wrong, for people. Several findings are joined with `; `, each names its field.
    message: String,
    /// The kind of failure, for programs.
    #[schema(value_type = FailureCodeName)]
    code: &'static str,
    /// The section of the documentation about this code.
    doc_url: String,
}

/// Writes the bodies of failed requests; one for each worker.
pub(super) struct ErrorBodies {
    /// The page of the documentation about errors.
    page: String,
    /// Written once, because clients without a valid key may send many requests.
    unauthorized: Bytes,
}

impl ErrorBodies {
    /// `public_url` is the base URL of the service, without a trailing slash.
    pub(super) fn new(public_url: &str) -> Self {
        let page = format!("{public_url}/docs/errors.html");
        let mut bodies = Self { page, unauthorized: Bytes::new() };
        let unauthorized = ApiError::Unauthorized;
        bodies.unauthorized =
            bodies.write(unauthorized.status_code(), unauthorized.code(), unauthorized.to_string());
        bodies
    }

    fn write(&self, status: StatusCode, code: FailureCode, message: String) -> Bytes {
        let anchor = code.as_str().to_ascii_lowercase();
        let doc_url = format!("{}#{anchor}", self.page);
        let status_code = status.as_u16();
        let body = ErrorBody { status_code, message, code: code.as_str(), doc_url };
        // A struct of numbers and texts can always be serialized.
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    fn body(&self, error: &ApiError) -> Bytes {
        if matches!(error, ApiError::Unauthorized) {
            return self.unauthorized.clone();
        }
        self.write(error.status_code(), error.code(), error.to_string())
    }

    /// Returns the complete response for a handler that panicked.
    pub(super) fn panicked(&self) -> HttpResponse {
        let error = ApiError::Panicked;
        let mut response = error.error_response().set_body(BoxBody::new(self.body(&error)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// Gives a failed response its body. Responses of the framework (a body that is too large, an
    /// extractor's error), which are plain text, get the form of ours.
    pub(super) fn complete(&self, response: ServiceResponse) -> ServiceResponse {
        let status = response.status();
        if !(status.is_client_error() || status.is_server_error()) {
            return response;
        }
        let own = response.response().error().and_then(|error| error.as_error::<ApiError>());
        let body = if let Some(error) = own {
            self.body(error)
        } else {
            let content_type = response.headers().get(CONTENT_TYPE);
            let has_form = content_type.is_some_and(|content_type| {
                content_type == "application/json" || content_type == HTML
            });
            if has_form || response.request().path().starts_with("/portal") {
                return response;
            }
            let message = status.canonical_reason().unwrap_or("Error");
            self.write(status, FailureCode::of(status), message.to_owned())
        };
        let mut response = response.map_body(|_, _| BoxBody::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

impl ApiError {
    const fn code(&self) -> FailureCode {
        match self {
            Self::Invalid(_) | Self::Unreadable => FailureCode::InvalidRequest,
            Self::Unauthorized => FailureCode::Unauthorized,
            Self::Forbidden(_) => FailureCode::Forbidden,
            Self::SessionNotFound => FailureCode::SessionNotFound,
            Self::AttestationNotFound => FailureCode::AttestationNotFound,
            Self::NotFound => FailureCode::NotFound,
            Self::WrongMethod(_) => FailureCode::MethodNotAllowed,
            Self::NotJson => FailureCode::UnsupportedMediaType,
            Self::TooSlow => FailureCode::RequestTimeout,
            Self::TooLarge => FailureCode::PayloadTooLarge,
            Self::Conflict(code, _) => *code,
            Self::IdempotencyKeyReused => FailureCode::IdempotencyKeyReused,
            Self::TooMany(_) => FailureCode::RateLimited,
            Self::TooManyLinks(_) => FailureCode::RecipientRateLimited,
            Self::Panicked | Self::Internal(_) => FailureCode::InternalError,
        }
    }
}

/// Status and headers of an error; [`ErrorBodies`] adds the body, since it contains the service's
/// address.
impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::Unreadable => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::SessionNotFound | Self::AttestationNotFound | Self::NotFound => {
                StatusCode::NOT_FOUND
            }
            Self::WrongMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Conflict(..) => StatusCode::CONFLICT,
            Self::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany(_) | Self::TooManyLinks(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal(_) | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        if let Self::Internal(source) = self {
            tracing::error!(error = source.as_ref(), "a request failed");
        }
        let mut response = HttpResponse::new(self.status_code());
        let headers = response.headers_mut();
        if matches!(self, Self::Unauthorized) {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        } else if let Self::WrongMethod(allowed) = self {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        } else if let Self::TooMany(seconds) | Self::TooManyLinks(seconds) = self {
            headers.insert(RETRY_AFTER, HeaderValue::from(*seconds));
        }
        response
    }
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
            CreateError::OtherRequest => Self::IdempotencyKeyReused,
            CreateError::InFlight => Self::Conflict(
                FailureCode::IdempotencyConflict,
                "a request with this Idempotency-Key is being carried out",
            ),
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
            SessionError::ProductionKey => {
                Self::Forbidden("the test clock is for development keys")
            }
            SessionError::Store(error) => error.into(),
        }
    }
}
