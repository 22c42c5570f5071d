//! Teams' own wordings of the mail that brings a link.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};

use crate::StoreError;

/// Keeps teams' templates. Another team's are as if they were not there.
#[async_trait]
pub trait TemplateStore: Send + Sync {
    async fn add_template(
        &self,
        team: TeamId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<TemplateId, StoreError>;

    /// A team's, the newest first.
    async fn templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError>;

    async fn template(
        &self,
        team: TeamId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Those of all teams that wait for an operator, the oldest first, with their teams' names.
    async fn submitted_templates(
        &self,
        limit: u16,
    ) -> Result<Vec<(StoredTemplate, String)>, StoreError>;

    /// Writes a draft anew; a rejected one becomes a draft. `false`: it is not there, or not open.
    async fn edit_template(
        &self,
        team: TeamId,
        id: TemplateId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Does a step with what was read. `false`: it is not there, was written anew since, or is
    /// not where this step begins.
    async fn step_template(
        &self,
        what: (TeamId, TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Makes an approved one what the team's mails in its language say, in the place of another,
    /// or no longer. `false`: there is no such approved one.
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

    /// Forgets one; `false`: it is not there. Links that were to be sent with it are sent with the
    /// default.
    async fn remove_template(&self, team: TeamId, id: TemplateId) -> Result<bool, StoreError>;
}

/// How often a template was written, so that what is approved is what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateRevision(pub i32);

/// A template as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTemplate {
    pub id: TemplateId,
    pub team: TeamId,
    pub draft: Draft,
    pub status: TemplateStatus,
    /// Why it was rejected; else empty.
    pub reason: String,
    pub is_default: bool,
    pub revision: TemplateRevision,
    pub updated_at: DateTime<Utc>,
}
