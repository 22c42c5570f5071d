//! The definitions that authors are writing.

use std::cmp::Reverse;

use async_trait::async_trait;
use domain::{
    api_key::Environment,
    id::{DraftId, PlatformId, TeamId},
};
use ports::{
    StoreError,
    authoring::{Draft, DraftContent, DraftStore, MAX_DRAFTS},
};

use crate::MemoryStore;

#[async_trait]
impl DraftStore for MemoryStore {
    async fn drafts(&self, team: TeamId) -> Result<Vec<Draft>, StoreError> {
        let teams = &self.state().teams;
        let theirs = teams.drafts.values().map(|(draft, _)| draft);
        let mut drafts: Vec<_> = theirs.filter(|draft| draft.team == team).cloned().collect();
        drafts.sort_by_key(|draft| (Reverse(draft.updated_at), draft.id));
        Ok(drafts)
    }

    async fn draft(
        &self,
        team: TeamId,
        id: DraftId,
    ) -> Result<Option<(Draft, DraftContent)>, StoreError> {
        let found = self.state().teams.drafts.get(&id).cloned();
        Ok(found.filter(|(draft, _)| draft.team == team))
    }

    async fn add_draft(&self, draft: &Draft, content: &DraftContent) -> Result<bool, StoreError> {
        const ACTION: &str = "add a draft";
        let teams = &mut self.state().teams;
        teams.require(draft.team, ACTION)?;
        if teams.drafts.contains_key(&draft.id) {
            return Err(StoreError::new(ACTION, "the draft exists already"));
        }
        let theirs = teams.drafts.values().filter(|(other, _)| other.team == draft.team);
        if theirs.count() >= MAX_DRAFTS {
            return Ok(false);
        }
        teams.drafts.insert(draft.id, (draft.clone(), content.clone()));
        Ok(true)
    }

    async fn replace_draft(
        &self,
        draft: &Draft,
        content: &DraftContent,
    ) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let stored = teams.drafts.get_mut(&draft.id).filter(|(before, _)| {
            before.team == draft.team && before.revision == draft.revision.saturating_sub(1)
        });
        let Some(stored) = stored else { return Ok(false) };
        *stored = (draft.clone(), content.clone());
        Ok(true)
    }

    async fn delete_draft(&self, team: TeamId, id: DraftId) -> Result<bool, StoreError> {
        let teams = &mut self.state().teams;
        let is_theirs = teams.drafts.get(&id).is_some_and(|(draft, _)| draft.team == team);
        Ok(is_theirs && teams.drafts.remove(&id).is_some())
    }

    async fn prepare_platform_of_drafts(&self, environment: Environment) -> Result<(), StoreError> {
        self.state().catalogue.prepare_drafts(PlatformId::of_drafts(environment));
        Ok(())
    }
}
