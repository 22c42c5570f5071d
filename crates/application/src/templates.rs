//! Deciding about submitted e-mail templates: the same rules in the portal and for operators.

use chrono::{DateTime, Utc};
use domain::{
    audit::Deed,
    branding::Brand,
    id::TemplateId,
    template::{LONGEST_REASON, Step, Wording},
};
use ports::{
    StoreError,
    audit_log::AuditLog,
    notifier::Stationery,
    template_store::{KeptTemplate, Revision, TemplateStore},
};

/// What operators are shown at once.
pub const WAITING: u16 = 200;

/// Why a template is not what it was to become.
#[derive(Debug, thiserror::Error)]
pub enum Undecided {
    #[error("no such template waits to be approved")]
    NotThere,
    #[error("a reason has 1 to {LONGEST_REASON} characters")]
    Reason,
    #[error("it cannot be sent: {0}")]
    Unsendable(String),
    #[error("it was changed meanwhile: look at it once more")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where templates are, who knows what can be sent, and who writes down what is done.
pub struct Desk<'a> {
    pub templates: &'a dyn TemplateStore,
    pub stationery: &'a dyn Stationery,
    pub audit: &'a dyn AuditLog,
}

/// Who does it, and when, as the log of the template's team is told.
pub struct Doer<'a> {
    pub now: DateTime<Utc>,
    pub deed: &'a (dyn Fn(&str, &str) -> Deed + Sync),
}

impl Desk<'_> {
    /// One that waits for an operator, whoever's it is.
    pub async fn waiting(&self, id: TemplateId) -> Result<KeptTemplate, Undecided> {
        let waiting = self.templates.submitted_templates(WAITING).await?.into_iter();
        waiting.map(|(kept, _)| kept).find(|kept| kept.id == id).ok_or(Undecided::NotThere)
    }

    /// Refuses what cannot be sent.
    fn sendable(&self, wording: &Wording) -> Result<(), Undecided> {
        let written = self.stationery.preview(wording, "", &Brand::default());
        written.map(drop).map_err(|flaws| Undecided::Unsendable(flaws.join("; ")))
    }

    /// Takes a step with a template, as it was read.
    pub async fn step(
        &self,
        kept: &KeptTemplate,
        revision: Revision,
        (step, reason): (Step, &str),
        doer: Doer<'_>,
    ) -> Result<(), Undecided> {
        if matches!(step, Step::Submit | Step::Approve) {
            self.sendable(&kept.draft.wording)?;
        }
        let reason = if step == Step::Reject { reason_of(reason)? } else { "" };
        let deed = (doer.deed)(&format!("template.{}", step.as_str()), &kept.id.to_string());
        self.audit.note(kept.team, &deed).await?;
        let what = (kept.team, kept.id, revision);
        let taken = self.templates.step_template(what, step, reason, doer.now).await?;
        if taken { Ok(()) } else { Err(Undecided::Changed) }
    }
}

fn reason_of(reason: &str) -> Result<&str, Undecided> {
    let reason = reason.trim();
    let fits = (1..=LONGEST_REASON).contains(&reason.chars().count());
    let readable = !reason.contains(|c: char| c.is_control() && !c.is_whitespace());
    if fits && readable { Ok(reason) } else { Err(Undecided::Reason) }
}
