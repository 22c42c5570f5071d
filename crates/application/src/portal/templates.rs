//! The e-mail templates of a team: written by its members, reviewed by an operator before they are
//! used.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Permission,
    branding::BrandName,
    id::TemplateId,
    template::{Draft, MAX_TEMPLATES, ReviewStep},
};
use ports::{
    brand_store::BrandStore,
    clock::Clock,
    driving::{PortalError, Preview, SignedInUser, TemplateService},
    notifier::MailRenderer,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore},
};

use super::AuditTrail;
use crate::template_review::{Actor, MAX_SUBMITTED_SHOWN, TemplateReview, TemplateReviewError};

const NOT_FOUND: PortalError = PortalError::NotFound("template");

/// Implements [`TemplateService`].
pub struct Templates {
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub renderer: Arc<dyn MailRenderer>,
    pub audit: AuditTrail,
    pub clock: Arc<dyn Clock>,
}

impl From<TemplateReviewError> for PortalError {
    fn from(error: TemplateReviewError) -> Self {
        match error {
            TemplateReviewError::NotThere => NOT_FOUND,
            TemplateReviewError::Store(error) => error.into(),
            TemplateReviewError::Unsendable(_)
            | TemplateReviewError::Reason
            | TemplateReviewError::Changed => Self::Invalid(error.to_string()),
        }
    }
}

impl Templates {
    async fn team_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError> {
        self.templates.template(user.team, id).await?.ok_or(NOT_FOUND)
    }

    fn review(&self) -> TemplateReview<'_> {
        TemplateReview {
            templates: &*self.templates,
            renderer: &*self.renderer,
            audit: &*self.audit.log,
        }
    }
}

#[async_trait]
impl TemplateService for Templates {
    async fn templates(&self, user: &SignedInUser) -> Result<Vec<StoredTemplate>, PortalError> {
        user.require(Permission::View)?;
        Ok(self.templates.templates(user.team).await?)
    }

    async fn one_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError> {
        user.require(Permission::View)?;
        let own = self.team_template(user, id).await;
        if own.is_err() && user.require(Permission::Operate).is_ok() {
            return Ok(self.review().waiting(id).await?);
        }
        own
    }

    async fn add_template(
        &self,
        user: &SignedInUser,
        draft: Draft,
    ) -> Result<TemplateId, PortalError> {
        user.require(Permission::Edit)?;
        if self.templates.templates(user.team).await?.len() >= MAX_TEMPLATES {
            return Err(PortalError::Invalid(format!(
                "a team can have up to {MAX_TEMPLATES} templates"
            )));
        }
        self.audit.record(user, "template.add", &format!("{:?}", draft.name)).await?;
        Ok(self.templates.add_template(user.team, &draft, self.clock.now()).await?)
    }

    async fn write_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
        draft: Draft,
    ) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        let stored = self.team_template(user, id).await?;
        self.audit.record(user, "template.write", &stored.id.to_string()).await?;
        let now = self.clock.now();
        if self.templates.edit_template(user.team, id, &draft, now).await? {
            return Ok(());
        }
        let why =
            "submitted and approved templates can't be edited. Withdraw it or create another one";
        Err(PortalError::Invalid(why.into()))
    }

    async fn step_template(
        &self,
        user: &SignedInUser,
        (id, revision): (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: String,
    ) -> Result<(), PortalError> {
        let stored = match step {
            ReviewStep::Submit | ReviewStep::Withdraw => {
                user.require(Permission::Edit)?;
                self.team_template(user, id).await?
            }
            ReviewStep::Approve | ReviewStep::Reject => {
                user.require(Permission::Operate)?;
                self.review().waiting(id).await?
            }
        };
        // The event is for the log of the team that the template belongs to.
        let event = |action: &str, subject: &str| self.audit.event(user, action, subject);
        let actor = Actor { now: self.clock.now(), audit_event: &event };
        Ok(self.review().step(&stored, revision, (step, &reason), actor).await?)
    }

    async fn prefer_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
        is_default: bool,
    ) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        self.team_template(user, id).await?;
        let action = if is_default { "template.prefer" } else { "template.prefer-no-more" };
        self.audit.record(user, action, &id.to_string()).await?;
        if self.templates.set_default_template(user.team, id, is_default).await? {
            return Ok(());
        }
        Err(PortalError::Invalid("only an approved template can be the default".into()))
    }

    async fn remove_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
    ) -> Result<(), PortalError> {
        user.require(Permission::Edit)?;
        self.team_template(user, id).await?;
        self.audit.record(user, "template.remove", &id.to_string()).await?;
        let removed = self.templates.remove_template(user.team, id).await?;
        if removed { Ok(()) } else { Err(NOT_FOUND) }
    }

    async fn submitted_templates(
        &self,
        user: &SignedInUser,
    ) -> Result<Vec<(StoredTemplate, String)>, PortalError> {
        user.require(Permission::Operate)?;
        Ok(self.templates.submitted_templates(MAX_SUBMITTED_SHOWN).await?)
    }

    async fn preview(
        &self,
        user: &SignedInUser,
        stored: StoredTemplate,
    ) -> Result<Preview, PortalError> {
        let is_own = stored.team == user.team;
        user.require(if is_own { Permission::View } else { Permission::Operate })?;
        let brand = self.brands.brand(stored.team).await?;
        let name = brand.name.as_ref().map(BrandName::as_str);
        let sender = name.unwrap_or(if is_own { &user.team_name } else { "The team" });
        Ok(self.renderer.preview(&stored.draft.wording, sender, &brand))
    }
}
