//! The review of e-mail templates: the same rules for members in the portal and for operators.

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

/// Submitted templates that an operator is shown at once.
pub const MAX_SUBMITTED_SHOWN: u16 = 200;

/// Why a step of a review was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TemplateReviewError {
    #[error("no template with this ID is waiting for approval")]
    NotThere,
    #[error("enter a reason of 1 to {MAX_REASON_CHARS} characters")]
    Reason,
    #[error("the template has problems: {0}")]
    Unsendable(String),
    #[error("the template was changed. Review it again")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes steps of a review, and writes them to the audit log of the template's team.
pub struct TemplateReview<'a> {
    pub templates: &'a dyn TemplateStore,
    pub renderer: &'a dyn MailRenderer,
    pub audit: &'a dyn AuditLog,
}

/// The actor of a review step, and its time.
pub struct Actor<'a> {
    pub now: DateTime<Utc>,
    /// Makes the audit event of an action on a subject.
    pub audit_event: &'a (dyn Fn(&str, &str) -> AuditEvent + Sync),
}

impl TemplateReview<'_> {
    /// Returns a template that waits for an operator, whichever team it belongs to.
    pub async fn waiting(&self, id: TemplateId) -> Result<StoredTemplate, TemplateReviewError> {
        let submitted = self.templates.submitted_templates(MAX_SUBMITTED_SHOWN).await?.into_iter();
        submitted
            .map(|(stored, _)| stored)
            .find(|stored| stored.id == id)
            .ok_or(TemplateReviewError::NotThere)
    }

    /// Refuses a template that cannot be rendered.
    fn check_rendering(&self, wording: &TemplateText) -> Result<(), TemplateReviewError> {
        let rendered = self.renderer.preview(wording, "", &Brand::default());
        rendered.map(drop).map_err(|errors| TemplateReviewError::Unsendable(errors.join("; ")))
    }

    /// Takes a step with the revision of a template that the actor saw. The audit event is written
    /// first, so that no step is taken without one.
    pub async fn step(
        &self,
        stored: &StoredTemplate,
        revision: TemplateRevision,
        (step, reason): (ReviewStep, &str),
        actor: Actor<'_>,
    ) -> Result<(), TemplateReviewError> {
        if matches!(step, ReviewStep::Submit | ReviewStep::Approve) {
            self.check_rendering(&stored.draft.wording)?;
        }
        let reason = if step == ReviewStep::Reject { reason_of(reason)? } else { "" };
        let event =
            (actor.audit_event)(&format!("template.{}", step.as_str()), &stored.id.to_string());
        self.audit.note(stored.team, &event).await?;
        let what = (stored.team, stored.id, revision);
        let is_taken = self.templates.step_template(what, step, reason, actor.now).await?;
        if is_taken { Ok(()) } else { Err(TemplateReviewError::Changed) }
    }
}

fn reason_of(reason: &str) -> Result<&str, TemplateReviewError> {
    let reason = reason.trim();
    let fits = (1..=MAX_REASON_CHARS).contains(&reason.chars().count());
    let readable = !reason.contains(|c: char| c.is_control() && !c.is_whitespace());
    if fits && readable { Ok(reason) } else { Err(TemplateReviewError::Reason) }
}

#[cfg(test)]
mod tests;
