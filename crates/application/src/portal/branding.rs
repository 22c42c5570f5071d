//! What a team looks like to its applicants.

use async_trait::async_trait;
use domain::{
    account::Permission,
    branding::{Brand, BrandName, Colour, Logo},
};
use ports::driving::{BrandingService, PortalError, SignedInUser};

use super::People;

#[async_trait]
impl BrandingService for People {
    async fn brand(&self, visitor: &SignedInUser) -> Result<Brand, PortalError> {
        visitor.require(Permission::Look)?;
        Ok(self.brands.brand(visitor.team).await?)
    }

    async fn set_brand(
        &self,
        visitor: &SignedInUser,
        name: Option<BrandName>,
        colour: Option<Colour>,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Govern)?;
        let shown = name.as_ref().map(BrandName::as_str).unwrap_or_default();
        let painted = colour.map(|colour| colour.to_string()).unwrap_or_default();
        self.note(visitor, "branding.set", &format!("{shown:?} {painted}")).await?;
        Ok(self.brands.set_brand(visitor.team, name.as_ref(), colour).await?)
    }

    async fn set_logo(
        &self,
        visitor: &SignedInUser,
        logo: Option<Logo>,
    ) -> Result<(), PortalError> {
        visitor.require(Permission::Govern)?;
        let action = if logo.is_some() { "branding.logo" } else { "branding.no-logo" };
        self.note(visitor, action, "").await?;
        Ok(self.brands.set_logo(visitor.team, logo.as_ref()).await?)
    }
}
