//! The brand of each team, as its applicants see it.

use async_trait::async_trait;
use domain::{
    branding::{Brand, BrandName, Colour, Logo},
    https_url::HttpsUrl,
    id::{SessionId, TeamId},
};
use ports::{StoreError, brand_store::BrandStore};

use super::{Teams, no_team};
use crate::MemoryStore;

impl Teams {
    /// Returns a team's brand; an empty one if the team does not exist.
    fn brand(&self, id: TeamId) -> Brand {
        self.team(id).map(|team| team.brand.clone()).unwrap_or_default()
    }

    fn brand_mut(&mut self, id: TeamId, action: &'static str) -> Result<&mut Brand, StoreError> {
        self.team_mut(id).map(|team| &mut team.brand).ok_or_else(|| no_team(action))
    }
}

#[async_trait]
impl BrandStore for MemoryStore {
    async fn brand(&self, team: TeamId) -> Result<Brand, StoreError> {
        Ok(self.state().teams.brand(team))
    }

    async fn brand_of(&self, session: SessionId) -> Result<Brand, StoreError> {
        let state = self.state();
        let team = state.team_of_session(session);
        Ok(team.map(|team| state.teams.brand(team)).unwrap_or_default())
    }

    async fn team_name_of(&self, session: SessionId) -> Result<Option<String>, StoreError> {
        let state = self.state();
        let team = state.team_of_session(session).and_then(|team| state.teams.team(team));
        Ok(team.map(|team| team.name.clone()))
    }

    async fn set_brand(
        &self,
        team: TeamId,
        name: Option<&BrandName>,
        colour: Option<Colour>,
        privacy_url: Option<&HttpsUrl>,
    ) -> Result<(), StoreError> {
        let teams = &mut self.state().teams;
        let brand = teams.brand_mut(team, "set a brand")?;
        brand.name = name.cloned();
        brand.colour = colour;
        brand.privacy_url = privacy_url.cloned();
        Ok(())
    }

    async fn set_logo(&self, team: TeamId, logo: Option<&Logo>) -> Result<(), StoreError> {
        let teams = &mut self.state().teams;
        teams.brand_mut(team, "set a logo")?.logo = logo.cloned();
        Ok(())
    }
}
