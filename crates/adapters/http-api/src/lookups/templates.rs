//! `GET /partner/email-templates`

use actix_web::web;
use domain::template::{KIND, TemplateStatus};
use ports::{driving::LookupService, template_store::StoredTemplate};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    envelope::{Envelope, Success, ok},
    error::ApiError,
};

/// E-mail templates
///
/// The approved e-mail templates of your team.
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
pub(crate) async fn email_templates(
    lookups: web::Data<dyn LookupService>,
    Caller(caller): Caller,
) -> Result<Success<Vec<EmailTemplate>>, ApiError> {
    let approved = lookups.email_templates(caller.team).await?;
    Ok(ok(approved.into_iter().map(EmailTemplate::from).collect()))
}

#[derive(Serialize, ToSchema)]
pub(crate) struct EmailTemplate {
    id: i32,
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    subject: String,
    #[schema(example = "APPROVED")]
    status: &'static str,
}

impl From<StoredTemplate> for EmailTemplate {
    fn from(kept: StoredTemplate) -> Self {
        Self {
            id: kept.id.0,
            kind: KIND,
            name: kept.draft.name,
            subject: kept.draft.wording.subject,
            status: TemplateStatus::as_str(kept.status),
        }
    }
}
