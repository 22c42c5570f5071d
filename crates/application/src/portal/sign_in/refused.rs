//! Recording sign-ins that were refused.

use std::sync::Arc;

use ports::{
    account_store::{RequestOrigin, StoredUser},
    refusals::{RefusalClass, RefusalLog},
};
use tokio::runtime::Handle;

use crate::portal::AuditTrail;

/// Records refused sign-ins for the operator and, where an account is concerned, for its team.
#[derive(Clone)]
pub struct RefusedSignIns {
    pub audit: AuditTrail,
    pub refusals: Arc<dyn RefusalLog>,
    pub runtime: Handle,
}

impl RefusedSignIns {
    /// Records that a factor was wrong.
    ///
    /// The delays between attempts bound the number of audit entries, and [`RefusalLog`] that of
    /// log lines. The audit entry is written by a task of its own: the time of an answer must not
    /// tell whether there is such an account.
    pub(crate) fn record(
        &self,
        account: Option<&StoredUser>,
        factor: &'static str,
        origin: &RequestOrigin,
    ) {
        metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "refused").increment(1);
        let user = account.map(|account| account.user.id.to_string()).unwrap_or_default();
        let client = origin.address;
        if self.refusals.may_log(RefusalClass::SignIn) {
            tracing::warn!(user.id = user, client.address = %client, factor, "a sign-in was refused");
        }
        let Some(account) = account else { return };
        let (log, team) = (self.audit.log.clone(), account.user.team);
        let event = self.audit.account_event(account, origin, ("sign-in.refused", factor));
        self.runtime.spawn(async move {
            if let Err(error) = log.note(team, &event).await {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, "failed to record a refused sign-in in the audit log");
            }
        });
    }
}
