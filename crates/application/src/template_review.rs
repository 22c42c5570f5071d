//! Deciding about submitted e-mail templates: the same rules in the portal and for operators.

use chrono::{DateTime, Utc};
use domain::{
    audit::AuditEvent,
    branding::Brand,
    id::TemplateId,
    template::{MAX_REASON_CHARS, ReviewStep, TemplateText},
};
use ports::{
    StoreError,
    audit_log::AuditLog,
    notifier::MailRenderer,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore},
};

/// What operators are shown at once.
pub const MAX_SUBMITTED_SHOWN: u16 = 200;

/// Why a template is not what it was to become.
#[derive(Debug, thiserror::Error)]
pub enum TemplateReviewError {
    #[error("no such template waits to be approved")]
    NotThere,
    #[error("a reason has 1 to {MAX_REASON_CHARS} characters")]
    Reason,
    #[error("it cannot be sent: {0}")]
    Unsendable(String),
    #[error("it was changed meanwhile: look at it once more")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where templates are, who knows what can be sent, and who writes down what is done.
pub struct TemplateReview<'a> {
    pub templates: &'a dyn TemplateStore,
    pub stationery: &'a dyn MailRenderer,
    pub audit: &'a dyn AuditLog,
}

/// Who does it, and when, as the log of the template's team is told.
pub struct Actor<'a> {
    pub now: DateTime<Utc>,
    pub deed: &'a (dyn Fn(&str, &str) -> AuditEvent + Sync),
}

impl TemplateReview<'_> {
    /// One that waits for an operator, whoever's it is.
    pub async fn waiting(&self, id: TemplateId) -> Result<StoredTemplate, TemplateReviewError> {
        let waiting = self.templates.submitted_templates(MAX_SUBMITTED_SHOWN).await?.into_iter();
        waiting
            .map(|(kept, _)| kept)
            .find(|kept| kept.id == id)
            .ok_or(TemplateReviewError::NotThere)
    }

    /// Refuses what cannot be sent.
    fn sendable(&self, wording: &TemplateText) -> Result<(), TemplateReviewError> {
        let written = self.stationery.preview(wording, "", &Brand::default());
        written.map(drop).map_err(|flaws| TemplateReviewError::Unsendable(flaws.join("; ")))
    }

    /// Takes a step with a template, as it was read.
    pub async fn step(
        &self,
        kept: &StoredTemplate,
        revision: TemplateRevision,
        (step, reason): (ReviewStep, &str),
        doer: Actor<'_>,
    ) -> Result<(), TemplateReviewError> {
        if matches!(step, ReviewStep::Submit | ReviewStep::Approve) {
            self.sendable(&kept.draft.wording)?;
        }
        let reason = if step == ReviewStep::Reject { reason_of(reason)? } else { "" };
        let deed = (doer.deed)(&format!("template.{}", step.as_str()), &kept.id.to_string());
        self.audit.note(kept.team, &deed).await?;
        let what = (kept.team, kept.id, revision);
        let taken = self.templates.step_template(what, step, reason, doer.now).await?;
        if taken { Ok(()) } else { Err(TemplateReviewError::Changed) }
    }
}

fn reason_of(reason: &str) -> Result<&str, TemplateReviewError> {
    let reason = reason.trim();
    let fits = (1..=MAX_REASON_CHARS).contains(&reason.chars().count());
    let readable = !reason.contains(|c: char| c.is_control() && !c.is_whitespace());
    if fits && readable { Ok(reason) } else { Err(TemplateReviewError::Reason) }
}
