//! What a team looks like to its applicants, as the portal shows and changes it.

use async_trait::async_trait;
use domain::branding::{Brand, BrandName, Colour, Logo};

use super::{PortalError, SignedInUser};

/// A team's name, colour and logo.
#[async_trait]
pub trait BrandingService: Send + Sync {
    async fn brand(&self, visitor: &SignedInUser) -> Result<Brand, PortalError>;

    /// Sets name and colour.
    async fn set_brand(
        &self,
        visitor: &SignedInUser,
        name: Option<BrandName>,
        colour: Option<Colour>,
    ) -> Result<(), PortalError>;

    /// Sets the logo, or takes it away.
    async fn set_logo(&self, visitor: &SignedInUser, logo: Option<Logo>)
    -> Result<(), PortalError>;
}
