//! Recording what members do, before it is done.

use std::sync::Arc;

use domain::audit::AuditEvent;
use ports::{
    StoreError,
    account_store::{RequestOrigin, StoredUser},
    audit_log::AuditLog,
    clock::Clock,
    driving::SignedInUser,
};

/// Records audit events in the logs of teams.
///
/// A use case waits for the record before it changes anything: the log has no gaps, and an event
/// whose change failed afterwards is in it too.
#[derive(Clone)]
pub struct AuditTrail {
    pub log: Arc<dyn AuditLog>,
    pub clock: Arc<dyn Clock>,
}

impl AuditTrail {
    /// Records what a signed-in user is about to do in the log of their team.
    pub(super) async fn record(
        &self,
        user: &SignedInUser,
        action: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        self.log.note(user.team, &self.event(user, action, subject)).await
    }

    /// Records what happens to an account whose owner is not signed in.
    pub(super) async fn record_for_account(
        &self,
        account: &StoredUser,
        origin: &RequestOrigin,
        (action, subject): (&str, &str),
    ) -> Result<(), StoreError> {
        let event = self.account_event(account, origin, (action, subject));
        self.log.note(account.user.team, &event).await
    }

    /// Returns an event of a signed-in user, for the log of any team.
    pub(super) fn event(&self, user: &SignedInUser, action: &str, subject: &str) -> AuditEvent {
        let event = AuditEvent::new(self.clock.now(), &user.email, action, subject);
        event.from(user.from.address)
    }

    pub(super) fn account_event(
        &self,
        account: &StoredUser,
        origin: &RequestOrigin,
        (action, subject): (&str, &str),
    ) -> AuditEvent {
        let email = account.user.email.as_str();
        AuditEvent::new(self.clock.now(), email, action, subject).from(origin.address)
    }
}
