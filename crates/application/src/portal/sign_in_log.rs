//! What is written down of sign-ins, and what people are told of their accounts.

use domain::{
    audit::AuditEvent,
    id::{NoticeId, TeamId, UserId},
    notice::AccountEvent,
    secret::Secret,
};
use ports::{
    StoreError,
    account_store::{RequestOrigin, StoredUser},
    notice_store::Notice,
    refusals::RefusalClass,
};
use uuid::Uuid;

use super::{People, attempts::SigningInBrowser};

impl People {
    /// Owes somebody a mail about what happened to their account a moment ago.
    pub(super) async fn tell(
        &self,
        user: UserId,
        event: AccountEvent,
        from: &RequestOrigin,
    ) -> Result<(), StoreError> {
        let id = NoticeId::from_uuid(Uuid::from_u128(self.core.random.new_id()));
        let at = self.core.clock.now();
        self.notices.enqueue_notice(&Notice { id, user, event, at, from: from.clone() }).await
    }

    /// Writes down that somebody was not let in, for the operator and, where it is about one of
    /// their accounts, for the team. Limits on tries bound how many
    /// entries that are, and the log has a bound of its own. Not waited
    /// for: the time of an answer must not tell whether there is such an account.
    pub(super) fn note_refusal(
        &self,
        kept: Option<&StoredUser>,
        factor: &'static str,
        from: &RequestOrigin,
    ) {
        metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "refused").increment(1);
        let user = kept.map(|kept| kept.user.id.to_string()).unwrap_or_default();
        let client = from.address;
        if self.core.refusals.may_log(RefusalClass::SignIn) {
            tracing::warn!(user.id = user, client.address = %client, factor, "a sign-in was refused");
        }
        let Some(kept) = kept else { return };
        let (team, email) = (kept.user.team, kept.user.email.as_str());
        let deed = AuditEvent::new(self.core.clock.now(), email, "sign-in.refused", factor);
        let (audit, deed) = (self.audit.clone(), deed.from(client));
        self.core.runtime.spawn(async move {
            if let Err(error) = audit.note(team, &deed).await {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, "a refused sign-in could not be recorded in the audit log");
            }
        });
    }

    /// Writes a sign-in down, and keeps the browser that it was made in; answers what that is to show
    /// from now on.
    pub(super) async fn note_sign_in(
        &self,
        kept: &StoredUser,
        from: &RequestOrigin,
        browser: SigningInBrowser,
    ) -> Result<Secret, StoreError> {
        metrics::counter!("avouch_portal_sign_ins_total", "outcome" => "in").increment(1);
        let (team, email): (TeamId, _) = (kept.user.team, kept.user.email.as_str());
        let (shown, is_new) = self.keep_browser(kept.user.id, browser).await?;
        let subject = if is_new { "new browser" } else { "" };
        let deed =
            AuditEvent::new(self.core.clock.now(), email, "sign-in", subject).from(from.address);
        self.audit.note(team, &deed).await?;
        if is_new {
            self.tell(kept.user.id, AccountEvent::NewBrowser, from).await?;
        }
        Ok(shown)
    }
}
