//! What teams look like to their applicants.

use async_trait::async_trait;
use domain::{
    branding::{Brand, BrandName, Colour, Logo},
    id::{SessionId, TeamId},
};

use crate::StoreError;

/// Keeps each team's brand.
#[async_trait]
pub trait BrandStore: Send + Sync {
    /// With nothing in it, where the team has none.
    async fn brand(&self, team: TeamId) -> Result<Brand, StoreError>;

    /// That of the team whose session it is; with nothing in it, where there is no such session.
    async fn brand_of(&self, session: SessionId) -> Result<Brand, StoreError>;

    /// Sets name and colour, and leaves the logo.
    async fn set_brand(
        &self,
        team: TeamId,
        name: Option<&BrandName>,
        colour: Option<Colour>,
    ) -> Result<(), StoreError>;

    /// Sets the logo, and leaves name and colour.
    async fn set_logo(&self, team: TeamId, logo: Option<&Logo>) -> Result<(), StoreError>;
}
