//! `GET /partner/notification-platforms`

use actix_web::web;
use domain::notification::Channel;
use ports::driving::LookupService;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    icons::PublicUrl,
};

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
    public_url: web::Data<PublicUrl>,
) -> Success<Vec<NotificationPlatform>> {
    let shown = |channel: &Channel| NotificationPlatform::new(*channel, &public_url);
    ok(lookups.channels().iter().map(shown).collect())
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotificationPlatform {
    id: i64,
    name: &'static str,
    display_name: &'static str,
    description: &'static str,
    icon: String,
    is_active: bool,
}

impl NotificationPlatform {
    fn new(channel: Channel, public_url: &PublicUrl) -> Self {
        let (display_name, description) = match channel {
            Channel::Email => ("E-mail", "A mail with the link, in the receiver's language"),
            Channel::Whatsapp => {
                ("WhatsApp", "A message with the link to the receiver's WhatsApp number")
            }
            Channel::Sms => ("SMS", "A text message with the link, in the receiver's language"),
        };
        let icon = public_url.icon(&format!("/icons/{}.svg", channel.name()));
        let (id, name) = (channel.id(), channel.name());
        Self { id, name, display_name, description, icon, is_active: true }
    }
}
