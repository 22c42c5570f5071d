//! `avouch admin …` about teams' e-mail templates.

use std::sync::Arc;

use adapters::{diesel::Store, system::SystemClock};
use clap::Subcommand;
use domain::{
    audit::Deed,
    branding::Brand,
    id::{TeamId, TemplateId},
    template::{LONGEST_REASON, Step},
    webhook::wire_time,
};
use notify::Wordings;
use ports::{
    audit_log::AuditLog as _,
    clock::Clock as _,
    notifier::Stationery as _,
    template_store::{KeptTemplate, Revision, TemplateStore as _},
};
use serde_json::{Value, json};

use super::ADMIN;
use crate::kept::{Failure, explain};

const WAITING: u16 = 200;

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
    pub(super) async fn run(self, store: &Arc<Store>) -> Result<Value, Failure> {
        match self {
            Self::ListTemplates { team: Some(team) } => {
                let all = store.templates(team).await.map_err(explain)?;
                Ok(json!({ "templates": all.iter().map(shown).collect::<Vec<_>>() }))
            }
            Self::ListTemplates { team: None } => {
                let all = store.submitted_templates(WAITING).await.map_err(explain)?;
                let all: Vec<_> = all.iter().map(|(kept, _)| shown(kept)).collect();
                Ok(json!({ "templates": all }))
            }
            Self::ApproveTemplate { template_id, revision } => {
                decide(store, (template_id, Revision(revision)), Step::Approve, "").await
            }
            Self::RejectTemplate { template_id, revision, reason } => {
                if !(1..=LONGEST_REASON).contains(&reason.chars().count()) {
                    return Err(format!("a reason has 1 to {LONGEST_REASON} characters").into());
                }
                decide(store, (template_id, Revision(revision)), Step::Reject, &reason).await
            }
        }
    }
}

fn shown(kept: &KeptTemplate) -> Value {
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
    (id, revision): (TemplateId, Revision),
    step: Step,
    reason: &str,
) -> Result<Value, Failure> {
    let waiting = store.submitted_templates(WAITING).await.map_err(explain)?.into_iter();
    let kept = waiting.map(|(kept, _)| kept).find(|kept| kept.id == id);
    let kept = kept.ok_or_else(|| format!("no template {id} waits to be approved"))?;
    if step == Step::Approve {
        let written = Wordings.preview(&kept.draft.wording, "", &Brand::default());
        written.map_err(|flaws| format!("it cannot be sent: {}", flaws.join("; ")))?;
    }
    let now = SystemClock.now();
    let action = format!("template.{}", step.as_str());
    let deed = Deed::new(now, ADMIN, &action, &id.to_string());
    store.note(kept.team, &deed).await.map_err(explain)?;
    let what = (kept.team, id, revision);
    if !store.step_template(what, step, reason, now).await.map_err(explain)? {
        return Err(format!("template {id} was written anew: list it once more").into());
    }
    Ok(json!({ "templateId": id, "status": step.to().as_str() }))
}
