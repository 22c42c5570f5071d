//! `GET /partner/notification-platforms`

use actix_web::web;
use domain::notification::Channel;
use ports::driving::LookupService;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
};

/// The path of a line icon on a grid of 24 by 24.
macro_rules! icon {
    ($lines:literal) => {
        concat!(
            "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' ",
            "fill='none' stroke='%231f4fd8' stroke-width='2'%3E",
            $lines,
            "%3C/svg%3E"
        )
    };
}

/// An envelope.
const MAIL: &str =
    icon!("%3Crect x='3' y='5' width='18' height='14' rx='2'/%3E%3Cpath d='m3 7 9 6 9-6'/%3E");
/// A speech bubble.
const BUBBLE: &str = icon!("%3Cpath d='M12 3a9 9 0 1 1-4.5 16.8L3 21l1.2-4.5A9 9 0 0 1 12 3z'/%3E");
/// A phone.
const PHONE: &str =
    icon!("%3Crect x='7' y='2' width='10' height='20' rx='2'/%3E%3Cpath d='M11 18h2'/%3E");

/// Notification channels
///
/// The channels over which the service can send the link to the applicant.
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
pub(crate) async fn notification_platforms(
    _: Caller,
    lookups: web::Data<dyn LookupService>,
) -> Success<Vec<NotificationPlatform>> {
    ok(lookups.channels().iter().copied().map(NotificationPlatform::from).collect())
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotificationPlatform {
    id: i64,
    name: &'static str,
    display_name: &'static str,
    description: &'static str,
    icon: &'static str,
    is_active: bool,
}

impl From<Channel> for NotificationPlatform {
    fn from(channel: Channel) -> Self {
        let (display_name, description, icon) = match channel {
            Channel::Email => ("E-mail", "A mail with the link, in the receiver's language", MAIL),
            Channel::Whatsapp => {
                ("WhatsApp", "A message with the link to the receiver's WhatsApp number", BUBBLE)
            }
            Channel::Sms => {
                ("SMS", "A text message with the link, in the receiver's language", PHONE)
            }
        };
        let (id, name) = (channel.id(), channel.name());
        Self { id, name, display_name, description, icon, is_active: true }
    }
}
