//! `POST /partner/browser-session/{id}/resend-notification`

use actix_web::web;
use domain::id::SessionId;
use ports::driving::{NotifyError, SessionService};
use serde::Serialize;
use utoipa::ToSchema;

use super::session_id;
use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
    failure_code::FailureCode,
};

/// Send the link again
///
/// Sends the link of an open session to the applicant again, over the channel that was chosen at
/// creation: at most five times in all, a minute apart. The timeline shows whether it arrived.
#[utoipa::path(
    post,
    path = "/partner/browser-session/{id}/resend-notification",
    tag = "Sessions",
    operation_id = "resendNotification",
    params(("id" = Uuid, Path, description = "The `sessionId`.")),
    responses(
        (status = 200, description = "The message is queued.", body = Envelope<Resent>),
        (status = 404, description = "No session of this key has this id.", body = ErrorBody),
        (
            status = 409,
            description = "The session has no channel or has ended, or its link was sent five times.",
            body = ErrorBody,
        ),
    ),
)]
pub(crate) async fn resend(
    sessions: web::Data<dyn SessionService>,
    Caller(caller): Caller,
    path: web::Path<String>,
) -> Result<Success<Resent>, ApiError> {
    let id = session_id(&path)?;
    sessions.notify_again(&caller, id).await?;
    Ok(ok(Resent { session_id: id, notification_status: "queued" }))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ResentNotification)]
pub(crate) struct Resent {
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = String, pattern = "^queued$")]
    notification_status: &'static str,
}

impl From<NotifyError> for ApiError {
    fn from(error: NotifyError) -> Self {
        match error {
            NotifyError::NotFound => Self::SessionNotFound,
            NotifyError::NoChannel => Self::Conflict(
                FailureCode::NoNotificationChannel,
                "the session was created without notificationPlatformId",
            ),
            NotifyError::Over => Self::Conflict(FailureCode::SessionEnded, "the session has ended"),
            NotifyError::NoMore => Self::Conflict(
                FailureCode::ResendLimitReached,
                "the link was sent as often as it may be",
            ),
            NotifyError::TooSoon { retry_after } => Self::TooMany(retry_after),
            NotifyError::Store(error) => error.into(),
        }
    }
}
