//! `GET /partner/email-templates`

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
};

/// E-mail templates
///
/// The approved templates of the key's team. There is no channel to use one with yet, so the list is
/// empty.
#[utoipa::path(
    get,
    path = "/partner/email-templates",
    tag = "Lookups",
    operation_id = "listEmailTemplates",
    responses((
        status = 200, description = "The approved templates.",
        body = Envelope<Vec<EmailTemplate>>,
    )),
)]
pub(in crate::http) async fn email_templates(_: Caller) -> Success<Vec<EmailTemplate>> {
    ok(vec![])
}

#[derive(Serialize, ToSchema)]
pub(in crate::http) struct EmailTemplate {
    id: i32,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    subject: String,
    status: String,
}
