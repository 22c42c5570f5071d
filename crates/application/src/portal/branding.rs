//! The brand that a team shows its applicants.

use std::sync::Arc;

use async_trait::async_trait;
use domain::{
    account::Permission,
    branding::{Brand, BrandName, Colour, Logo},
    https_url::HttpsUrl,
};
use ports::{
    brand_store::BrandStore,
    driving::{BrandingService, PortalError, SignedInUser},
};

use super::AuditTrail;

/// Implements [`BrandingService`].
pub struct Branding {
    pub brands: Arc<dyn BrandStore>,
    pub audit: AuditTrail,
}

#[async_trait]
impl BrandingService for Branding {
    async fn brand(&self, user: &SignedInUser) -> Result<Brand, PortalError> {
        user.require(Permission::View)?;
        Ok(self.brands.brand(user.team).await?)
    }

    async fn set_brand(
        &self,
        user: &SignedInUser,
        name: Option<BrandName>,
        colour: Option<Colour>,
        privacy_url: Option<HttpsUrl>,
    ) -> Result<(), PortalError> {
        user.require(Permission::ManageTeam)?;
        let name_text = name.as_ref().map(BrandName::as_str).unwrap_or_default();
        let colour_text = colour.map(|colour| colour.to_string()).unwrap_or_default();
        let privacy_text = privacy_url.as_ref().map(HttpsUrl::as_str).unwrap_or_default();
        let subject = format!("{name_text:?} {colour_text} {privacy_text}");
        self.audit.record(user, "branding.set", &subject).await?;
        Ok(self.brands.set_brand(user.team, name.as_ref(), colour, privacy_url.as_ref()).await?)
    }

    async fn set_logo(&self, user: &SignedInUser, logo: Option<Logo>) -> Result<(), PortalError> {
        user.require(Permission::ManageTeam)?;
        let action = if logo.is_some() { "branding.logo" } else { "branding.no-logo" };
        self.audit.record(user, action, "").await?;
        Ok(self.brands.set_logo(user.team, logo.as_ref()).await?)
    }
}
