//! A team's own wordings of its mails: written by the team, read by an operator before they are
//! used.

use async_trait::async_trait;
use domain::{
    account::Permission,
    audit::AuditEvent,
    branding::BrandName,
    id::TemplateId,
    template::{Draft, MAX_TEMPLATES, ReviewStep},
};
use ports::{
    driving::{PortalError, Preview, SignedInUser, TemplateService},
    template_store::{StoredTemplate, TemplateRevision},
};

use super::People;
use crate::template_review::{Actor, MAX_SUBMITTED_SHOWN, TemplateReview, TemplateReviewError};

const NONE: PortalError = PortalError::NotFound("template");

impl From<TemplateReviewError> for PortalError {
    fn from(error: TemplateReviewError) -> Self {
        match error {
            TemplateReviewError::NotThere => NONE,
            TemplateReviewError::Store(error) => error.into(),
            TemplateReviewError::Unsendable(_)
            | TemplateReviewError::Reason
            | TemplateReviewError::Changed => Self::Invalid(error.to_string()),
        }
    }
}

impl People {
    async fn own_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError> {
        self.templates.template(visitor.team, id).await?.ok_or(NONE)
    }

    fn desk(&self) -> TemplateReview<'_> {
        TemplateReview {
            templates: self.templates.as_ref(),
            stationery: self.stationery.as_ref(),
            audit: self.audit.as_ref(),
        }
    }
}

#[async_trait]
impl TemplateService for People {
    async fn templates(&self, visitor: &SignedInUser) -> Result<Vec<StoredTemplate>, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.templates.templates(visitor.team).await?)
    }

    async fn one_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError> {
        visitor.require(Permission::Look)?;
        let own = self.own_template(visitor, id).await;
        if own.is_err() && visitor.require(Permission::Operate).is_ok() {
            return Ok(self.desk().waiting(id).await?);
        }
        own
    }

    async fn add_template(
        &self,
        visitor: &SignedInUser,
        draft: Draft,
    ) -> Result<TemplateId, PortalError> {
        visitor.require(Permission::Work)?;
        if self.templates.templates(visitor.team).await?.len() >= MAX_TEMPLATES {
            return Err(PortalError::Invalid(format!(
                "a team has up to {MAX_TEMPLATES} templates"
            )));
        }
        self.note(visitor, "template.add", &format!("{:?}", draft.name)).await?;
        Ok(self.templates.add_template(visitor.team, &draft, self.core.clock.now()).await?)
    }

    async fn write_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
        draft: Draft,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        let kept = self.own_template(visitor, id).await?;
        self.note(visitor, "template.write", &kept.id.to_string()).await?;
        let now = self.core.clock.now();
        if self.templates.edit_template(visitor.team, id, &draft, now).await? {
            return Ok(());
        }
        let why = "what was submitted or approved stays as it is: withdraw it, or make another";
        Err(PortalError::Invalid(why.into()))
    }

    async fn step_template(
        &self,
        visitor: &SignedInUser,
        (id, revision): (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: String,
    ) -> Result<(), PortalError> {
        let kept = match step {
            ReviewStep::Submit | ReviewStep::Withdraw => {
                visitor.require(Permission::Work)?;
                self.own_template(visitor, id).await?
            }
            ReviewStep::Approve | ReviewStep::Reject => {
                visitor.require(Permission::Operate)?;
                self.desk().waiting(id).await?
            }
        };
        let (now, address) = (self.core.clock.now(), visitor.from.address);
        // In the log of the team whose it is.
        let deed = |action: &str, subject: &str| {
            AuditEvent::new(now, &visitor.email, action, subject).from(address)
        };
        let doer = Actor { now, deed: &deed };
        Ok(self.desk().step(&kept, revision, (step, &reason), doer).await?)
    }

    async fn prefer_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
        on: bool,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        self.own_template(visitor, id).await?;
        let action = if on { "template.prefer" } else { "template.prefer-no-more" };
        self.note(visitor, action, &id.to_string()).await?;
        if self.templates.set_default_template(visitor.team, id, on).await? {
            return Ok(());
        }
        Err(PortalError::Invalid("an approved template can be the default".into()))
    }

    async fn remove_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Work)?;
        self.own_template(visitor, id).await?;
        self.note(visitor, "template.remove", &id.to_string()).await?;
        let removed = self.templates.remove_template(visitor.team, id).await?;
        if removed { Ok(()) } else { Err(NONE) }
    }

    async fn submitted_templates(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Vec<(StoredTemplate, String)>, PortalError> {
        visitor.require(Permission::Operate)?;
        Ok(self.templates.submitted_templates(MAX_SUBMITTED_SHOWN).await?)
    }

    async fn preview(
        &self,
        visitor: &SignedInUser,
        kept: StoredTemplate,
    ) -> Result<Preview, PortalError> {
        let own = kept.team == visitor.team;
        visitor.require(if own { Permission::Look } else { Permission::Operate })?;
        let brand = self.brands.brand(kept.team).await?;
        let name = brand.name.as_ref().map(BrandName::as_str);
        let sender = name.unwrap_or(if own { &visitor.team_name } else { "The team" });
        Ok(self.stationery.preview(&kept.draft.wording, sender, &brand))
    }
}
