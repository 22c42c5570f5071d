//! A team's own wordings of its mails, as the portal shows and changes them.

use async_trait::async_trait;
use domain::{
    id::TemplateId,
    template::{Draft, ReviewStep},
};

use super::{PortalError, SignedInUser};
use crate::{
    notifier::RenderedMail,
    template_store::{StoredTemplate, TemplateRevision},
};

/// A mail, or everything that is wrong with its wording.
pub type Preview = Result<RenderedMail, Vec<String>>;

/// A team's templates, and what operators decide about them.
#[async_trait]
pub trait TemplateService: Send + Sync {
    /// The newest first.
    async fn templates(&self, visitor: &SignedInUser) -> Result<Vec<StoredTemplate>, PortalError>;

    /// One of the team's; to an operator, also another team's that was submitted.
    async fn one_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError>;

    async fn add_template(
        &self,
        visitor: &SignedInUser,
        draft: Draft,
    ) -> Result<TemplateId, PortalError>;

    /// Writes one anew that is a draft or was rejected.
    async fn write_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
        draft: Draft,
    ) -> Result<(), PortalError>;

    /// Submits, withdraws, approves or rejects what was read. Submitting refuses what cannot be
    /// sent; approving and rejecting are for operators.
    async fn step_template(
        &self,
        visitor: &SignedInUser,
        what: (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: String,
    ) -> Result<(), PortalError>;

    async fn prefer_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
        on: bool,
    ) -> Result<(), PortalError>;

    async fn remove_template(
        &self,
        visitor: &SignedInUser,
        id: TemplateId,
    ) -> Result<(), PortalError>;

    /// Those of all teams that wait for an operator, with their teams' names.
    async fn submitted_templates(
        &self,
        visitor: &SignedInUser,
    ) -> Result<Vec<(StoredTemplate, String)>, PortalError>;

    /// What a mail with it is like, for somebody made up.
    async fn preview(
        &self,
        visitor: &SignedInUser,
        kept: StoredTemplate,
    ) -> Result<Preview, PortalError>;
}
