//! Suppressions: mailboxes that receive no more mails of a team.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::notification::Mailbox;
use ports::{StoreError, suppression_store::SuppressionStore};

use crate::MemoryStore;

#[async_trait]
impl SuppressionStore for MemoryStore {
    async fn is_suppressed(&self, mailbox: &Mailbox) -> Result<bool, StoreError> {
        Ok(self.state().notifications.suppressed.contains(mailbox))
    }

    async fn suppress(&self, mailbox: &Mailbox, _: DateTime<Utc>) -> Result<(), StoreError> {
        let mut state = self.state();
        let is_new = !state.notifications.suppressed.contains(mailbox);
        if is_new && state.teams.has(mailbox.team) {
            state.notifications.suppressed.push(*mailbox);
        }
        Ok(())
    }

    async fn unsuppress(&self, mailbox: &Mailbox) -> Result<(), StoreError> {
        self.state().notifications.suppressed.retain(|other| other != mailbox);
        Ok(())
    }
}
