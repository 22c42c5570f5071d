//! Creates teams, and sets who may embed their sessions.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    frame_ancestors::{FrameAncestor, MAX_FRAME_ANCESTORS},
    id::TeamId,
};
use ports::{
    clock::Clock,
    driving::{AdministrationError, TeamAdminService},
    key_store::TeamStore,
    random::RandomSource,
};
use uuid::Uuid;

use super::require;

const MAX_NAME_CHARS: usize = 200;

/// Implements [`TeamAdminService`].
pub struct TeamAdministration {
    pub teams: Arc<dyn TeamStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

#[async_trait]
impl TeamAdminService for TeamAdministration {
    async fn create(&self, name: &str) -> Result<TeamId, AdministrationError> {
        let name = name.trim();
        if !(1..=MAX_NAME_CHARS).contains(&name.chars().count()) {
            let rule = format!("a team's name has 1 to {MAX_NAME_CHARS} characters");
            return Err(AdministrationError::Invalid(rule));
        }
        let team = TeamId::from_uuid(Uuid::from_u128(self.random.new_id()));
        self.teams.add_team(team, name, self.clock.now()).await?;
        Ok(team)
    }

    async fn set_frame_ancestors(
        &self,
        team: TeamId,
        origins: &[FrameAncestor],
    ) -> Result<(), AdministrationError> {
        if origins.len() > MAX_FRAME_ANCESTORS {
            let rule = format!("a team can have up to {MAX_FRAME_ANCESTORS} allowed origins");
            return Err(AdministrationError::Invalid(rule));
        }
        require(self.teams.set_frame_ancestors(team, origins).await?, "team", &team)
    }
}
