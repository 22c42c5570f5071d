//! The mail templates of teams.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    id::{TeamId, TemplateId},
    language::Language,
    template::{Draft, ReviewStep, TemplateStatus},
};
use ports::{
    StoreError,
    template_store::{StoredTemplate, TemplateRevision, TemplateStore},
};

use super::Teams;
use crate::{MemoryStore, schedule::earliest};

impl Teams {
    /// Returns a template of this team; one of another team counts as absent.
    fn template(&self, team: TeamId, id: TemplateId) -> Option<&StoredTemplate> {
        self.templates.get(&id).filter(|kept| kept.team == team)
    }

    fn template_mut(&mut self, team: TeamId, id: TemplateId) -> Option<&mut StoredTemplate> {
        self.templates.get_mut(&id).filter(|kept| kept.team == team)
    }
}

#[async_trait]
impl TemplateStore for MemoryStore {
    async fn add_template(
        &self,
        team: TeamId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<TemplateId, StoreError> {
        let teams = &mut self.state().teams;
        teams.require(team, "add a template")?;
        teams.last_template = teams.last_template.saturating_add(1);
        let kept = StoredTemplate {
            id: TemplateId(teams.last_template),
            team,
            draft: draft.clone(),
            status: TemplateStatus::Draft,
            reason: String::new(),
            is_default: false,
            revision: TemplateRevision(1),
            updated_at: now,
        };
        let id = kept.id;
        teams.templates.insert(id, kept);
        Ok(id)
    }

    async fn templates(&self, team: TeamId) -> Result<Vec<StoredTemplate>, StoreError> {
        let teams = &self.state().teams;
        let theirs = teams.templates.values().rev().filter(|kept| kept.team == team);
        Ok(theirs.cloned().collect())
    }

    async fn template(
        &self,
        team: TeamId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        Ok(self.state().teams.template(team, id).cloned())
    }

    async fn submitted_templates(
        &self,
        limit: u16,
    ) -> Result<Vec<(StoredTemplate, String)>, StoreError> {
        let teams = &self.state().teams;
        let all = teams.templates.values();
        let submitted = all.filter(|kept| kept.status == TemplateStatus::Submitted);
        let oldest = earliest(submitted.map(|kept| (kept.updated_at, kept.id)), limit);
        let kept = oldest.iter().filter_map(|id| teams.templates.get(id));
        let named = kept
            .filter_map(|kept| teams.team(kept.team).map(|team| (kept.clone(), team.name.clone())));
        Ok(named.collect())
    }

    async fn edit_template(
        &self,
        team: TeamId,
        id: TemplateId,
        draft: &Draft,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let open = teams.template_mut(team, id).filter(|kept| kept.status.is_open());
        let Some(kept) = open else { return Ok(false) };
        *kept = StoredTemplate {
            draft: draft.clone(),
            status: TemplateStatus::Draft,
            reason: String::new(),
            revision: TemplateRevision(kept.revision.0.saturating_add(1)),
            updated_at: now,
            ..*kept
        };
        Ok(true)
    }

    async fn step_template(
        &self,
        (team, id, revision): (TeamId, TemplateId, TemplateRevision),
        step: ReviewStep,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let read = teams.template_mut(team, id).filter(|kept| kept.revision == revision);
        let Some(kept) = read.filter(|kept| step.from().contains(&kept.status)) else {
            return Ok(false);
        };
        kept.status = step.to();
        reason.clone_into(&mut kept.reason);
        kept.updated_at = now;
        Ok(true)
    }

    async fn set_default_template(
        &self,
        team: TeamId,
        id: TemplateId,
        on: bool,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let approved = teams.template(team, id);
        let approved = approved.filter(|kept| kept.status == TemplateStatus::Approved);
        let Some(language) = approved.map(|kept| kept.draft.wording.language) else {
            return Ok(false);
        };
        let theirs = teams.templates.values_mut().filter(|kept| kept.team == team);
        for kept in theirs.filter(|kept| kept.draft.wording.language == language) {
            kept.is_default = on && kept.id == id;
        }
        Ok(true)
    }

    async fn default_template(
        &self,
        team: TeamId,
        language: Language,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        let teams = &self.state().teams;
        let mut defaults =
            teams.templates.values().filter(|kept| kept.team == team && kept.is_default);
        Ok(defaults.find(|kept| kept.draft.wording.language == language).cloned())
    }

    async fn remove_template(&self, team: TeamId, id: TemplateId) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        if teams.template(team, id).is_none() {
            return Ok(false);
        }
        Ok(teams.templates.remove(&id).is_some())
    }
}
