//! A team's own wordings of its mails: written by the team, read by an operator before they are
//! used.

use async_trait::async_trait;
use domain::{
    account::Right,
    audit::Deed,
    branding::BrandName,
    id::TemplateId,
    template::{Draft, MOST, Step},
};
use ports::{
    driving::{PortalError, Preview, TemplateService, Visitor},
    template_store::{KeptTemplate, Revision},
};

use super::People;
use crate::templates::{Desk, Doer, Undecided, WAITING};

const NONE: PortalError = PortalError::NotFound("template");

impl From<Undecided> for PortalError {
    fn from(error: Undecided) -> Self {
        match error {
            Undecided::NotThere => NONE,
            Undecided::Store(error) => error.into(),
            Undecided::Unsendable(_) | Undecided::Reason | Undecided::Changed => {
                Self::Invalid(error.to_string())
            }
        }
    }
}

impl People {
    async fn own_template(
        &self,
        visitor: &Visitor,
        id: TemplateId,
    ) -> Result<KeptTemplate, PortalError> {
        self.templates.template(visitor.team, id).await?.ok_or(NONE)
    }

    fn desk(&self) -> Desk<'_> {
        Desk {
            templates: self.templates.as_ref(),
            stationery: self.stationery.as_ref(),
            audit: self.audit.as_ref(),
        }
    }
}

#[async_trait]
impl TemplateService for People {
    async fn templates(&self, visitor: &Visitor) -> Result<Vec<KeptTemplate>, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.templates.templates(visitor.team).await?)
    }

    async fn one_template(
        &self,
        visitor: &Visitor,
        id: TemplateId,
    ) -> Result<KeptTemplate, PortalError> {
        visitor.must(Right::Look)?;
        let own = self.own_template(visitor, id).await;
        if own.is_err() && visitor.must(Right::Operate).is_ok() {
            return Ok(self.desk().waiting(id).await?);
        }
        own
    }

    async fn add_template(
        &self,
        visitor: &Visitor,
        draft: Draft,
    ) -> Result<TemplateId, PortalError> {
        visitor.must(Right::Work)?;
        if self.templates.templates(visitor.team).await?.len() >= MOST {
            return Err(PortalError::Invalid(format!("a team has up to {MOST} templates")));
        }
        self.note(visitor, "template.add", &format!("{:?}", draft.name)).await?;
        Ok(self.templates.add_template(visitor.team, &draft, self.core.clock.now()).await?)
    }

    async fn write_template(
        &self,
        visitor: &Visitor,
        id: TemplateId,
        draft: Draft,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Work)?;
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
        visitor: &Visitor,
        (id, revision): (TemplateId, Revision),
        step: Step,
        reason: String,
    ) -> Result<(), PortalError> {
        let kept = match step {
            Step::Submit | Step::Withdraw => {
                visitor.must(Right::Work)?;
                self.own_template(visitor, id).await?
            }
            Step::Approve | Step::Reject => {
                visitor.must(Right::Operate)?;
                self.desk().waiting(id).await?
            }
        };
        let (now, address) = (self.core.clock.now(), visitor.from.address);
        // In the log of the team whose it is.
        let deed = |action: &str, subject: &str| {
            Deed::new(now, &visitor.email, action, subject).from(address)
        };
        let doer = Doer { now, deed: &deed };
        Ok(self.desk().step(&kept, revision, (step, &reason), doer).await?)
    }

    async fn prefer_template(
        &self,
        visitor: &Visitor,
        id: TemplateId,
        on: bool,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Work)?;
        self.own_template(visitor, id).await?;
        let action = if on { "template.prefer" } else { "template.prefer-no-more" };
        self.note(visitor, action, &id.to_string()).await?;
        if self.templates.set_default_template(visitor.team, id, on).await? {
            return Ok(());
        }
        Err(PortalError::Invalid("an approved template can be the default".into()))
    }

    async fn remove_template(&self, visitor: &Visitor, id: TemplateId) -> Result<(), PortalError> {
        visitor.must(Right::Work)?;
        self.own_template(visitor, id).await?;
        self.note(visitor, "template.remove", &id.to_string()).await?;
        let removed = self.templates.remove_template(visitor.team, id).await?;
        if removed { Ok(()) } else { Err(NONE) }
    }

    async fn submitted_templates(
        &self,
        visitor: &Visitor,
    ) -> Result<Vec<(KeptTemplate, String)>, PortalError> {
        visitor.must(Right::Operate)?;
        Ok(self.templates.submitted_templates(WAITING).await?)
    }

    async fn preview(&self, visitor: &Visitor, kept: KeptTemplate) -> Result<Preview, PortalError> {
        let own = kept.team == visitor.team;
        visitor.must(if own { Right::Look } else { Right::Operate })?;
        let brand = self.brands.brand(kept.team).await?;
        let name = brand.name.as_ref().map(BrandName::as_str);
        let sender = name.unwrap_or(if own { &visitor.team_name } else { "The team" });
        Ok(self.stationery.preview(&kept.draft.wording, sender, &brand))
    }
}
