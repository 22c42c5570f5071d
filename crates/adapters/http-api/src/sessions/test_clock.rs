//! `POST /partner/test-clock`

use actix_web::web;
use domain::request::read_skipped_time;
use ports::driving::SessionService;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::JsonCaller,
    envelope::{Envelope, Success, ok},
    error::{ApiError, ErrorBody},
};

/// Move the test clock
///
/// Lets time pass for the open sessions of a development key, up to 1,000 of them: their
/// `expiresAt`, the deadline of the step that waits for the applicant, and an offer of another attempt
/// come nearer by this time. A limit that has passed then ends the session as it would have: at once,
/// or within seconds where a browser runs. Webhooks are sent as usual.
#[utoipa::path(
    post,
    path = "/partner/test-clock",
    tag = "Sessions",
    operation_id = "moveTestClock",
    request_body(content = TimeToPass),
    responses(
        (status = 200, description = "The time has passed.", body = Envelope<MovedClock>),
        (status = 400, description = "The request is invalid. `message` names each field.", body = ErrorBody),
        (status = 403, description = "The key is a production key.", body = ErrorBody),
        (status = 408, description = "The body did not arrive in time.", body = ErrorBody),
        (status = 413, description = "The body is larger than 65,536 bytes.", body = ErrorBody),
        (status = 415, description = "The `Content-Type` is not `application/json`.", body = ErrorBody),
    ),
)]
pub(crate) async fn advance(
    sessions: web::Data<dyn SessionService>,
    JsonCaller(caller, body): JsonCaller,
) -> Result<Success<MovedClock>, ApiError> {
    let by = read_skipped_time(&body)?;
    let moved = sessions.skip_time(&caller, by).await?;
    Ok(ok(MovedClock { advanced_seconds: by.span().num_seconds(), sessions: moved }))
}

/// The time to let pass.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct TimeToPass {
    #[schema(minimum = 1, maximum = 2_592_000, example = 600)]
    advance_seconds: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MovedClock {
    #[schema(minimum = 1, maximum = 2_592_000)]
    advanced_seconds: i64,
    /// How many sessions were open.
    #[schema(minimum = 0, maximum = 1000)]
    sessions: usize,
}
