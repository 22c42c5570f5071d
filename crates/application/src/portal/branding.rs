//! What a team looks like to its applicants.

use async_trait::async_trait;
use domain::{
    account::Right,
    branding::{Brand, BrandName, Colour, Logo},
};
use ports::driving::{BrandingService, PortalError, Visitor};

use super::People;

#[async_trait]
impl BrandingService for People {
    async fn brand(&self, visitor: &Visitor) -> Result<Brand, PortalError> {
        visitor.must(Right::Look)?;
        Ok(self.brands.brand(visitor.team).await?)
    }

    async fn set_brand(
        &self,
        visitor: &Visitor,
        name: Option<BrandName>,
        colour: Option<Colour>,
    ) -> Result<(), PortalError> {
        visitor.must(Right::Govern)?;
        let shown = name.as_ref().map(BrandName::as_str).unwrap_or_default();
        let painted = colour.map(|colour| colour.to_string()).unwrap_or_default();
        self.note(visitor, "branding.set", &format!("{shown:?} {painted}")).await?;
        Ok(self.brands.set_brand(visitor.team, name.as_ref(), colour).await?)
    }

    async fn set_logo(&self, visitor: &Visitor, logo: Option<Logo>) -> Result<(), PortalError> {
        visitor.must(Right::Govern)?;
        let action = if logo.is_some() { "branding.logo" } else { "branding.no-logo" };
        self.note(visitor, action, "").await?;
        Ok(self.brands.set_logo(visitor.team, logo.as_ref()).await?)
    }
}
