//! `GET /partner/notification-platforms`

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
};

/// Notification channels
///
/// The channels over which the service can send the link to the applicant. None can be configured
/// yet, so the list is empty.
#[utoipa::path(
    get,
    path = "/partner/notification-platforms",
    tag = "Lookups",
    operation_id = "listNotificationPlatforms",
    responses((
        status = 200, description = "The active channels.",
        body = Envelope<Vec<NotificationPlatform>>,
    )),
)]
pub(in crate::http) async fn notification_platforms(
    _: Caller,
) -> Success<Vec<NotificationPlatform>> {
    ok(vec![])
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct NotificationPlatform {
    id: i32,
    name: String,
    display_name: String,
    description: String,
    icon: String,
    is_active: bool,
}
