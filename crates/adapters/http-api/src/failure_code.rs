//! The codes of failed requests. Each is the heading of a section in `docs/site/src/errors.md`.

use actix_web::http::StatusCode;

macro_rules! failure_codes {
    ($($variant:ident $wire:literal;)+) => {
        /// The kind of a failure. Codes are only ever added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum FailureCode { $($variant,)+ }

        impl FailureCode {
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub(super) const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)+ }
            }
        }
    };
}

failure_codes! {
    InvalidRequest "INVALID_REQUEST";
    Unauthorized "UNAUTHORIZED";
    Forbidden "FORBIDDEN";
    NotFound "NOT_FOUND";
    SessionNotFound "SESSION_NOT_FOUND";
    AttestationNotFound "ATTESTATION_NOT_FOUND";
    MethodNotAllowed "METHOD_NOT_ALLOWED";
    RequestTimeout "REQUEST_TIMEOUT";
    IdempotencyConflict "IDEMPOTENCY_CONFLICT";
    NoNotificationChannel "NO_NOTIFICATION_CHANNEL";
    SessionEnded "SESSION_ENDED";
    ResendLimitReached "RESEND_LIMIT_REACHED";
    PayloadTooLarge "PAYLOAD_TOO_LARGE";
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE";
    RangeNotSatisfiable "RANGE_NOT_SATISFIABLE";
    IdempotencyKeyReused "IDEMPOTENCY_KEY_REUSED";
    RateLimited "RATE_LIMITED";
    RecipientRateLimited "RECIPIENT_RATE_LIMITED";
    InternalError "INTERNAL_ERROR";
    ServiceUnavailable "SERVICE_UNAVAILABLE";
}

impl FailureCode {
    /// Returns the code of a response that no handler of ours made.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::REQUEST_TIMEOUT => Self::RequestTimeout,
            StatusCode::PAYLOAD_TOO_LARGE => Self::PayloadTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::RANGE_NOT_SATISFIABLE => Self::RangeNotSatisfiable,
            StatusCode::TOO_MANY_REQUESTS => Self::RateLimited,
            StatusCode::SERVICE_UNAVAILABLE => Self::ServiceUnavailable,
            _ if status.is_server_error() => Self::InternalError,
            _ => Self::InvalidRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn every_code_has_a_section_in_the_documentation() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/site/src/errors.md");
        let page = fs::read_to_string(page).unwrap();
        for code in FailureCode::ALL {
            let heading = format!("\n### {}\n", code.as_str());
            assert_eq!(page.matches(&heading).count(), 1, "{heading}");
        }
    }
}
