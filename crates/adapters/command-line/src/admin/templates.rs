//! `avouch admin …` for teams' e-mail templates.

use clap::Subcommand;
use domain::{
    id::{TeamId, TemplateId},
    template::ReviewStep,
    webhook::wire_time,
};
use ports::{
    driving::TemplateAdminService,
    template_store::{StoredTemplate, TemplateRevision},
};
use serde_json::{Value, json};

use crate::CommandError;

#[derive(Debug, Subcommand)]
pub enum TemplateCommand {
    /// Lists a team's e-mail templates, or those of all teams that wait for approval
    ListTemplates {
        #[arg(long)]
        team: Option<TeamId>,
    },
    /// Approves a submitted e-mail template
    ApproveTemplate {
        template_id: TemplateId,
        /// The revision in the list; refused if the template was edited since
        #[arg(long)]
        revision: i32,
    },
    /// Rejects a submitted e-mail template
    RejectTemplate {
        template_id: TemplateId,
        /// The revision in the list; refused if the template was edited since
        #[arg(long)]
        revision: i32,
        /// The reason, which the team sees
        #[arg(long)]
        reason: String,
    },
}

impl TemplateCommand {
    pub(super) async fn run(
        self,
        templates: &dyn TemplateAdminService,
    ) -> Result<Value, CommandError> {
        let (template_id, revision, step, reason) = match self {
            Self::ListTemplates { team } => {
                let listed = templates.templates(team).await?;
                return Ok(json!({ "templates": listed.iter().map(template).collect::<Vec<_>>() }));
            }
            Self::ApproveTemplate { template_id, revision } => {
                (template_id, revision, ReviewStep::Approve, String::new())
            }
            Self::RejectTemplate { template_id, revision, reason } => {
                (template_id, revision, ReviewStep::Reject, reason)
            }
        };
        templates.review((template_id, TemplateRevision(revision)), step, &reason).await?;
        Ok(json!({ "templateId": template_id, "status": step.to().as_str() }))
    }
}

fn template(stored: &StoredTemplate) -> Value {
    let text = &stored.draft.wording;
    json!({
        "templateId": stored.id,
        "teamId": stored.team,
        "name": stored.draft.name,
        "language": text.language.tag(),
        "subject": text.subject,
        "body": text.body,
        "status": stored.status.as_str(),
        "reason": stored.reason,
        "isDefault": stored.is_default,
        "revision": stored.revision.0,
        "updatedAt": wire_time(stored.updated_at),
    })
}
