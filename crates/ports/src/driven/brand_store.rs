//! The store of teams' branding.

use async_trait::async_trait;
use domain::{
    branding::{Brand, BrandName, Colour, Logo},
    https_url::HttpsUrl,
    id::{SessionId, TeamId},
};

use crate::StoreError;

/// Stores the brand of each team.
#[async_trait]
pub trait BrandStore: Send + Sync {
    /// Returns a team's brand; empty if the team has none.
    async fn brand(&self, team: TeamId) -> Result<Brand, StoreError>;

    /// Returns the brand of a session's team; empty if there is no such session.
    async fn brand_of(&self, session: SessionId) -> Result<Brand, StoreError>;

    /// Returns the name with which a session's team was created. `None` if there is no such session.
    async fn team_name_of(&self, session: SessionId) -> Result<Option<String>, StoreError>;

    /// Sets all but the logo, which stays as it is.
    async fn set_brand(
        &self,
        team: TeamId,
        name: Option<&BrandName>,
        colour: Option<Colour>,
        privacy_url: Option<&HttpsUrl>,
    ) -> Result<(), StoreError>;

    /// Sets the logo; all else stays as it is.
    async fn set_logo(&self, team: TeamId, logo: Option<&Logo>) -> Result<(), StoreError>;
}
