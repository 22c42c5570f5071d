//! Closed lists of the domain, for the API description.

use std::borrow::Cow;

use domain::{
    error_code::ErrorCode,
    session::Status,
    workflow::{AttestMode, PromptKind},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use crate::failure_code::FailureCode;

fn texts(names: impl IntoIterator<Item = &'static str>, about: &str) -> RefOr<Schema> {
    let names: Vec<_> = names.into_iter().collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(about))
        .enum_values(Some(names))
        .build()
        .into()
}

/// The fourteen statuses of a session.
pub(crate) struct SessionStatus;

impl PartialSchema for SessionStatus {
    fn schema() -> RefOr<Schema> {
        texts(Status::ALL.iter().map(|status| status.as_str()), "The status of a session.")
    }
}

impl ToSchema for SessionStatus {
    fn name() -> Cow<'static, str> {
        "SessionStatus".into()
    }
}

/// Why a session failed or is incomplete.
pub(crate) struct ErrorCodeName;

impl PartialSchema for ErrorCodeName {
    fn schema() -> RefOr<Schema> {
        texts(
            ErrorCode::ALL.iter().map(|code| code.as_str()),
            "Why a session failed or is incomplete. More may be added.",
        )
    }
}

impl ToSchema for ErrorCodeName {
    fn name() -> Cow<'static, str> {
        "ErrorCode".into()
    }
}

/// Why a request failed.
pub(crate) struct FailureCodeName;

impl PartialSchema for FailureCodeName {
    fn schema() -> RefOr<Schema> {
        texts(
            FailureCode::ALL.iter().map(|code| code.as_str()),
            "Why a request failed. More may be added.",
        )
    }
}

impl ToSchema for FailureCodeName {
    fn name() -> Cow<'static, str> {
        "RequestErrorCode".into()
    }
}

/// The action of an applicant whose attempt failed, and who may start another one.
pub(crate) const RETRY_ACTION: &str = "retry";

/// What an applicant has to do.
pub(crate) struct ActionKind;

impl PartialSchema for ActionKind {
    fn schema() -> RefOr<Schema> {
        let kinds = PromptKind::ALL.iter().map(|kind| kind.as_str());
        texts(kinds.chain([RETRY_ACTION]), "What the applicant has to do.")
    }
}

impl ToSchema for ActionKind {
    fn name() -> Cow<'static, str> {
        "ActionKind".into()
    }
}

/// How much an attestor saw of the exchange with a platform.
pub(crate) struct AttestationType;

impl PartialSchema for AttestationType {
    fn schema() -> RefOr<Schema> {
        texts(
            [AttestMode::ZktlsFull, AttestMode::ZktlsRequest, AttestMode::FullReveal]
                .map(AttestMode::as_str),
            "How much the attestor saw of the exchange with the platform.",
        )
    }
}

impl ToSchema for AttestationType {
    fn name() -> Cow<'static, str> {
        "AttestationType".into()
    }
}

/// The progress of a recording.
pub(crate) struct RecordingStatus;

impl PartialSchema for RecordingStatus {
    fn schema() -> RefOr<Schema> {
        texts(["pending", "in_progress", "completed"], "The progress of a recording.")
    }
}

impl ToSchema for RecordingStatus {
    fn name() -> Cow<'static, str> {
        "RecordingStatus".into()
    }
}
