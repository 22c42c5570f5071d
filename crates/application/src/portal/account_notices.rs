//! Telling members by mail what happened to their accounts.

use std::sync::Arc;

use domain::{
    id::{NoticeId, UserId},
    notice::AccountEvent,
};
use ports::{
    StoreError,
    account_store::RequestOrigin,
    clock::Clock,
    notice_store::{Notice, NoticeStore},
    random::RandomSource,
};

/// Enqueues notices. A worker sends them.
#[derive(Clone)]
pub struct AccountNotices {
    pub notices: Arc<dyn NoticeStore>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn RandomSource>,
}

impl AccountNotices {
    /// Enqueues a notice about an event that happened to an account a moment ago.
    pub(super) async fn notify(
        &self,
        user: UserId,
        event: AccountEvent,
        origin: &RequestOrigin,
    ) -> Result<(), StoreError> {
        let id = NoticeId::from_u128(self.random.new_id());
        let at = self.clock.now();
        self.notices.enqueue_notice(&Notice { id, user, event, at, from: origin.clone() }).await
    }
}
