//! The service that manages a team's branding.

use async_trait::async_trait;
use domain::{
    branding::{Brand, BrandName, Colour, Logo},
    https_url::HttpsUrl,
};

use super::{PortalError, SignedInUser};

/// Reads and changes a team's brand.
#[async_trait]
pub trait BrandingService: Send + Sync {
    async fn brand(&self, user: &SignedInUser) -> Result<Brand, PortalError>;

    /// Sets all but the logo.
    async fn set_brand(
        &self,
        user: &SignedInUser,
        name: Option<BrandName>,
        colour: Option<Colour>,
        privacy_url: Option<HttpsUrl>,
    ) -> Result<(), PortalError>;

    /// Sets or removes the logo.
    async fn set_logo(&self, user: &SignedInUser, logo: Option<Logo>) -> Result<(), PortalError>;
}
