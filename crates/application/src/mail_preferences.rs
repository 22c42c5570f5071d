//! Whether recipients want more of a team's mails.

use std::sync::Arc;

use async_trait::async_trait;
use ports::{
    StoreError,
    brand_store::BrandStore,
    clock::Clock,
    driving::{MailPreference, MailPreferenceService},
    suppression_store::SuppressionStore,
    tokens::TokenIssuer,
};

/// Reads and sets the choice of a recipient, who is known by the token in the mail.
pub struct MailPreferences {
    pub tokens: Arc<dyn TokenIssuer>,
    pub clock: Arc<dyn Clock>,
    pub brands: Arc<dyn BrandStore>,
    pub suppressions: Arc<dyn SuppressionStore>,
}

#[async_trait]
impl MailPreferenceService for MailPreferences {
    async fn mails(&self, token: &str) -> Result<Option<MailPreference>, StoreError> {
        let Some(mailbox) = self.tokens.verify_mailbox_token(token) else { return Ok(None) };
        let sender = self.brands.brand(mailbox.team).await?.name;
        let wanted = !self.suppressions.is_suppressed(&mailbox).await?;
        Ok(Some(MailPreference { sender, wanted }))
    }

    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailPreference>, StoreError> {
        let Some(mailbox) = self.tokens.verify_mailbox_token(token) else { return Ok(None) };
        if wanted {
            self.suppressions.unsuppress(&mailbox).await?;
        } else {
            self.suppressions.suppress(&mailbox, self.clock.now()).await?;
        }
        let sender = self.brands.brand(mailbox.team).await?.name;
        Ok(Some(MailPreference { sender, wanted }))
    }
}

#[cfg(test)]
mod tests;
