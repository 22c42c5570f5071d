//! A team's own wordings of its mails: written by the team, read by an operator before they are
//! used.

use async_trait::async_trait;
use domain::{
    account::Right,
    audit::Deed,
    branding::{Brand, BrandName},
    id::TemplateId,
    template::{Draft, LONGEST_REASON, MOST, Step, Wording},
};
use ports::{
    driving::{PortalError, Preview, TemplateService, Visitor},
    template_store::{KeptTemplate, Revision},
};

use super::People;

const NONE: PortalError = PortalError::NotFound("template");
/// What operators are shown at once.
const WAITING: u16 = 200;

impl People {
    async fn own_template(
        &self,
        visitor: &Visitor,
        id: TemplateId,
    ) -> Result<KeptTemplate, PortalError> {
        self.templates.template(visitor.team, id).await?.ok_or(NONE)
    }

    /// One that waits for an operator, whoever's it is.
    async fn submitted_template(&self, id: TemplateId) -> Result<KeptTemplate, PortalError> {
        let waiting = self.templates.submitted_templates(WAITING).await?.into_iter();
        waiting.map(|(kept, _)| kept).find(|kept| kept.id == id).ok_or(NONE)
    }

    /// Refuses what cannot be sent.
    fn sendable(&self, wording: &Wording) -> Result<(), PortalError> {
        let written = self.stationery.preview(wording, "", &Brand::default());
        written.map(drop).map_err(|flaws| PortalError::Invalid(flaws.join("; ")))
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
            return self.submitted_template(id).await;
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
                self.submitted_template(id).await?
            }
        };
        if matches!(step, Step::Submit | Step::Approve) {
            self.sendable(&kept.draft.wording)?;
        }
        let reason = if step == Step::Reject { reason_of(&reason)? } else { "" };
        let action = format!("template.{}", step.as_str());
        let now = self.core.clock.now();
        // In the log of the team whose it is.
        let deed = Deed::new(now, &visitor.email, &action, &id.to_string());
        self.audit.note(kept.team, &deed.from(visitor.from.address)).await?;
        let what = (kept.team, id, revision);
        if self.templates.step_template(what, step, reason, now).await? {
            return Ok(());
        }
        Err(PortalError::Invalid("it was changed meanwhile: look at it once more".into()))
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

fn reason_of(reason: &str) -> Result<&str, PortalError> {
    let reason = reason.trim();
    let fits = (1..=LONGEST_REASON).contains(&reason.chars().count());
    if fits && !reason.contains(|c: char| c.is_control() && !c.is_whitespace()) {
        return Ok(reason);
    }
    Err(PortalError::Invalid(format!("a reason has 1 to {LONGEST_REASON} characters")))
}
