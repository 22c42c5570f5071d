//! The store of teams' mail templates.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};

use crate::StoreError;

/// Stores the templates of teams. Templates of another team count as absent.
#[async_trait]
pub trait TemplateStore: Send + Sync {
    async fn add_template(
        &self,
        team: TeamId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<TemplateId, StoreError>;

    /// Returns a team's templates, the newest first.
    async fn templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError>;

    async fn template(
        &self,
        team: TeamId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Returns the templates of all teams that wait for review, the oldest first, with the names of
    /// their teams.
    async fn submitted_templates(
        &self,
        limit: u16,
    ) -> Result<Vec<(StoredTemplate, String)>, StoreError>;

    /// Replaces a draft; a rejected template becomes a draft. Returns `false` if the template does
    /// not exist or is not open.
    async fn edit_template(
        &self,
        team: TeamId,
        id: TemplateId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Takes a review step with the revision that was read. Returns `false` if the template does not
    /// exist, was edited since, or has a status that does not allow the step.
    async fn step_template(
        &self,
        template: (TeamId, TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Makes an approved template the team's default for its language, in place of another, or no
    /// longer the default. Returns `false` if there is no such approved template.
    async fn set_default_template(
        &self,
        team: TeamId,
        id: TemplateId,
        on: bool,
    ) -> Result<bool, StoreError>;

    async fn default_template(
        &self,
        team: TeamId,
        language: Language,
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Deletes a template. Returns `false` if it does not exist. Pending notifications with it are
    /// sent with the default one.
    async fn remove_template(&self, team: TeamId, id: TemplateId) -> Result<bool, StoreError>;
}

/// The number of times that a template was edited, which ensures that the approved text is the one
/// that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateRevision(pub i32);

/// A stored template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTemplate {
    pub id: TemplateId,
    pub team: TeamId,
    pub draft: Draft,
    pub status: TemplateStatus,
    /// The reason of a rejection; otherwise empty.
    pub reason: String,
    pub is_default: bool,
    pub revision: TemplateRevision,
    pub updated_at: DateTime<Utc>,
}
