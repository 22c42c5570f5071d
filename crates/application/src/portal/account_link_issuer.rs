//! Issuing the links by which members choose a password.

use std::sync::Arc;

use domain::{
    account::LinkPurpose,
    id::{AccountLinkId, UserId},
};
use ports::{
    StoreError,
    account_links::{AccountLink, AccountLinkStore},
    clock::Clock,
    random::RandomSource,
};

/// Enqueues mails with account links. A worker sends them.
#[derive(Clone)]
pub struct AccountLinkIssuer {
    pub links: Arc<dyn AccountLinkStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

impl AccountLinkIssuer {
    /// Enqueues a mail with a link, which replaces the link that the member had before.
    pub(super) async fn enqueue(
        &self,
        user: UserId,
        purpose: LinkPurpose,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let link = AccountLink {
            id: AccountLinkId::from_u128(self.random.new_id()),
            user,
            purpose,
            created_at: now,
            expires_at: now + purpose.ttl(),
        };
        self.links.enqueue_link(&link).await
    }
}
