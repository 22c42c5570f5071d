//! Mails people what happened to their accounts.

use std::time::Duration;

use chrono::TimeDelta;
use domain::notice::MAX_NOTICE_AGE;
use futures_util::future::join_all;
use ports::{
    StoreError,
    notice_store::NoticeClaim,
    notifier::{AccountNotice, NotificationOutcome, SendError},
};

use super::{Workers, links::word, log_error};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Mails that are sent at once: they are claimed when the ones before are settled.
const BATCH: u16 = 8;
/// How long one mail may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(90);
/// Longer than that: a mail is not sent by two at a time.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(150);

impl Workers {
    pub(crate) async fn send_notices(&self) {
        loop {
            let now = self.core.clock.now();
            match self.notices.claim_notices(now, LEASE_TTL, BATCH).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    let sent = join_all(claims.iter().map(|claim| self.send_notice(claim))).await;
                    for error in sent.into_iter().filter_map(Result::err) {
                        log_error(
                            &error,
                            "failed to record the result of a notification mail; it may be sent again",
                        );
                    }
                }
                Err(error) => {
                    log_error(&error, "failed to claim notification mails, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    async fn send_notice(&self, claim: &NoticeClaim) -> Result<(), StoreError> {
        let notice = &claim.notice;
        let mail = AccountNotice {
            id: notice.id,
            address: claim.email.clone(),
            event: notice.event,
            at: notice.at,
            from: notice.from.clone(),
            link: format!("{}/portal/account", self.core.addresses.public),
        };
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.mailer.notify(&mail)).await;
        let sent = sent.unwrap_or(Err(SendError::Transient("it took too long".into())));
        if let Err(error) = &sent {
            let (id, attempt) = (notice.id, claim.attempt);
            tracing::warn!(mail.id = %id, %error, "try {attempt} to send a notice failed");
        }
        let verdict = match sent {
            Ok(()) => NotificationOutcome::Sent { at: self.core.clock.now() },
            Err(SendError::Permanent { why, .. }) => self.failed(why),
            Err(SendError::Transient(_)) => self.later(claim.attempt),
        };
        metrics::counter!("avouch_portal_mails_total", "outcome" => word(verdict)).increment(1);
        let again = match verdict {
            NotificationOutcome::RetryAt(due) if due - notice.at < MAX_NOTICE_AGE => Some(due),
            NotificationOutcome::RetryAt(_)
            | NotificationOutcome::Sent { .. }
            | NotificationOutcome::Failed { .. } => None,
        };
        self.notices.settle_notice(claim, again).await.map(drop)
    }
}
