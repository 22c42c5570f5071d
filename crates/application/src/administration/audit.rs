//! Recording what operators do on the command line, before it is done.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::{audit::AuditEvent, id::TeamId};
use ports::{StoreError, audit_log::AuditLog, clock::Clock};

/// The actor in the audit logs of teams.
const ACTOR: &str = "avouch admin";

/// Records what operators do in the log of the team that it concerns.
///
/// A use case waits for the record before it changes anything, as in the portal.
#[derive(Clone)]
pub struct OperatorAudit {
    pub log: Arc<dyn AuditLog>,
    pub clock: Arc<dyn Clock>,
}

impl OperatorAudit {
    pub(super) async fn record(
        &self,
        team: TeamId,
        action: &str,
        subject: &str,
    ) -> Result<(), StoreError> {
        self.log.note(team, &Self::event(self.clock.now(), action, subject)).await
    }

    pub(super) fn event(now: DateTime<Utc>, action: &str, subject: &str) -> AuditEvent {
        AuditEvent::new(now, ACTOR, action, subject)
    }
}
