//! `avouch admin …` about teams' e-mail templates.

use std::sync::Arc;

use clap::Subcommand;
use domain::{
    audit::AuditEvent,
    id::{TeamId, TemplateId},
    template::ReviewStep,
    webhook::wire_time,
};
use messaging::MailTemplates;
use ports::{
    clock::Clock as _,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore as _},
};
use serde_json::{Value, json};
use store::Store;
use system::clock::SystemClock;

use super::ADMIN;
use crate::storage::{StartupError, error_chain};
use application::template_review::{Actor, MAX_SUBMITTED_SHOWN, TemplateReview};

#[derive(Debug, Subcommand)]
pub(crate) enum TemplateCommand {
    /// Lists a team's e-mail templates, or those of all teams that wait to be approved
    ListTemplates {
        #[arg(long)]
        team: Option<TeamId>,
    },
    /// Approves a submitted e-mail template, as it was listed
    ApproveTemplate {
        template_id: TemplateId,
        /// What the list says; refused where it was written anew since
        #[arg(long)]
        revision: i32,
    },
    /// Rejects a submitted e-mail template
    RejectTemplate {
        template_id: TemplateId,
        /// As for approve-template
        #[arg(long)]
        revision: i32,
        /// What its team is told
        #[arg(long)]
        reason: String,
    },
}

impl TemplateCommand {
    pub(super) async fn run(self, store: &Arc<Store>) -> Result<Value, StartupError> {
        match self {
            Self::ListTemplates { team: Some(team) } => {
                let all = store.templates(team).await.map_err(error_chain)?;
                Ok(json!({ "templates": all.iter().map(shown).collect::<Vec<_>>() }))
            }
            Self::ListTemplates { team: None } => {
                let all =
                    store.submitted_templates(MAX_SUBMITTED_SHOWN).await.map_err(error_chain)?;
                let all: Vec<_> = all.iter().map(|(kept, _)| shown(kept)).collect();
                Ok(json!({ "templates": all }))
            }
            Self::ApproveTemplate { template_id, revision } => {
                decide(store, (template_id, TemplateRevision(revision)), ReviewStep::Approve, "")
                    .await
            }
            Self::RejectTemplate { template_id, revision, reason } => {
                decide(
                    store,
                    (template_id, TemplateRevision(revision)),
                    ReviewStep::Reject,
                    &reason,
                )
                .await
            }
        }
    }
}

fn shown(kept: &StoredTemplate) -> Value {
    let wording = &kept.draft.wording;
    json!({
        "templateId": kept.id, "teamId": kept.team, "name": kept.draft.name,
        "language": wording.language.tag(), "subject": wording.subject, "body": wording.body,
        "status": kept.status.as_str(), "reason": kept.reason, "isDefault": kept.is_default,
        "revision": kept.revision.0, "updatedAt": wire_time(kept.updated_at),
    })
}

async fn decide(
    store: &Store,
    (id, revision): (TemplateId, TemplateRevision),
    step: ReviewStep,
    reason: &str,
) -> Result<Value, StartupError> {
    let desk = TemplateReview { templates: store, renderer: &MailTemplates, audit: store };
    let kept = desk.waiting(id).await.map_err(error_chain)?;
    let now = SystemClock.now();
    let audit_event = |action: &str, subject: &str| AuditEvent::new(now, ADMIN, action, subject);
    let actor = Actor { now, audit_event: &audit_event };
    desk.step(&kept, revision, (step, reason), actor).await.map_err(error_chain)?;
    Ok(json!({ "templateId": id, "status": step.to().as_str() }))
}
