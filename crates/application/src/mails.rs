//! Whether receivers of mails want more of a team's.

use std::sync::Arc;

use async_trait::async_trait;
use ports::{
    StoreError,
    brand_store::BrandStore,
    driving::{MailChoice, MailService},
    suppression_store::SuppressionStore,
};

use crate::advance::Core;

pub struct Mailboxes {
    pub core: Arc<Core>,
    pub brands: Arc<dyn BrandStore>,
    pub suppressions: Arc<dyn SuppressionStore>,
}

#[async_trait]
impl MailService for Mailboxes {
    async fn mails(&self, token: &str) -> Result<Option<MailChoice>, StoreError> {
        let Some(mailbox) = self.core.tokens.mailbox_of(token) else { return Ok(None) };
        let sender = self.brands.brand(mailbox.team).await?.name;
        let wanted = !self.suppressions.is_suppressed(&mailbox).await?;
        Ok(Some(MailChoice { sender, wanted }))
    }

    async fn choose_mails(
        &self,
        token: &str,
        wanted: bool,
    ) -> Result<Option<MailChoice>, StoreError> {
        let Some(mailbox) = self.core.tokens.mailbox_of(token) else { return Ok(None) };
        if wanted {
            self.suppressions.admit(&mailbox).await?;
        } else {
            self.suppressions.suppress(&mailbox, self.core.clock.now()).await?;
        }
        let sender = self.brands.brand(mailbox.team).await?.name;
        Ok(Some(MailChoice { sender, wanted }))
    }
}
