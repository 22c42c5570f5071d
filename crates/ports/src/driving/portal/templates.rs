//! The service that manages a team's mail templates and their review.

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

/// A rendered mail, or all errors of its template.
pub type Preview = Result<RenderedMail, Vec<String>>;

/// Manages a team's templates, and lets operators review them.
#[async_trait]
pub trait TemplateService: Send + Sync {
    /// Returns the team's templates, the newest first.
    async fn templates(&self, user: &SignedInUser) -> Result<Vec<StoredTemplate>, PortalError>;

    /// Returns a template of the team; for an operator, also a submitted one of another team.
    async fn one_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
    ) -> Result<StoredTemplate, PortalError>;

    async fn add_template(
        &self,
        user: &SignedInUser,
        draft: Draft,
    ) -> Result<TemplateId, PortalError>;

    /// Replaces the text of a draft or rejected template.
    async fn write_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
        draft: Draft,
    ) -> Result<(), PortalError>;

    /// Submits, withdraws, approves or rejects the revision that was read. A template that cannot be
    /// rendered cannot be submitted; only operators approve and reject.
    async fn step_template(
        &self,
        user: &SignedInUser,
        template: (TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: String,
    ) -> Result<(), PortalError>;

    async fn prefer_template(
        &self,
        user: &SignedInUser,
        id: TemplateId,
        on: bool,
    ) -> Result<(), PortalError>;

    async fn remove_template(&self, user: &SignedInUser, id: TemplateId)
    -> Result<(), PortalError>;

    /// Returns the templates of all teams that wait for review, with the names of their teams.
    async fn submitted_templates(
        &self,
        user: &SignedInUser,
    ) -> Result<Vec<(StoredTemplate, String)>, PortalError>;

    /// Renders a mail of a template for a fictitious applicant.
    async fn preview(
        &self,
        user: &SignedInUser,
        template: StoredTemplate,
    ) -> Result<Preview, PortalError>;
}
