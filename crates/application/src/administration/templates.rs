//! Lists the mail templates of teams, and reviews those that were submitted.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    audit::AuditEvent,
    id::{TeamId, TemplateId},
    template::ReviewStep,
};
use ports::{
    driving::{AdministrationError, TemplateAdminService},
    notifier::MailRenderer,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore},
};

use super::OperatorAudit;
use crate::template_review::{Actor, MAX_SUBMITTED_SHOWN, TemplateReview, TemplateReviewError};

/// Implements [`TemplateAdminService`].
pub struct TemplateAdministration {
    pub templates: Arc<dyn TemplateStore>,
    pub renderer: Arc<dyn MailRenderer>,
    pub audit: OperatorAudit,
}

impl From<TemplateReviewError> for AdministrationError {
    fn from(error: TemplateReviewError) -> Self {
        match error {
            TemplateReviewError::Store(error) => error.into(),
            TemplateReviewError::NotThere
            | TemplateReviewError::Unsendable(_)
            | TemplateReviewError::Reason
            | TemplateReviewError::Changed => Self::Invalid(error.to_string()),
        }
    }
}

#[async_trait]
impl TemplateAdminService for TemplateAdministration {
    async fn templates(
        &self,
        team: Option<TeamId>,
    ) -> Result<Vec<StoredTemplate>, AdministrationError> {
        if let Some(team) = team {
            return Ok(self.templates.templates(team).await?);
        }
        let submitted = self.templates.submitted_templates(MAX_SUBMITTED_SHOWN).await?;
        Ok(submitted.into_iter().map(|(template, _)| template).collect())
    }

    async fn review(
        &self,
        (id, revision): (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
    ) -> Result<(), AdministrationError> {
        let review = TemplateReview {
            templates: &*self.templates,
            renderer: &*self.renderer,
            audit: &*self.audit.log,
        };
        let template = review.waiting(id).await?;
        let now = self.audit.clock.now();
        let audit_event = |action: &str, subject: &str| -> AuditEvent {
            OperatorAudit::event(now, action, subject)
        };
        let actor = Actor { now, audit_event: &audit_event };
        Ok(review.step(&template, revision, (step, reason), actor).await?)
    }
}
