//! Mails the people of the portal their links.

use std::time::Duration;

use chrono::TimeDelta;
use domain::secret::Secret;
use futures_util::future::join_all;
use ports::{
    StoreError,
    account_links::MailClaim,
    notifier::{AccountMail, NotificationOutcome, SendError},
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
    pub(crate) async fn send_mails(&self) {
        loop {
            let now = self.core.clock.now();
            match self.account_links.claim_mails(now, LEASE_TTL, BATCH).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    let sent = join_all(claims.iter().map(|claim| self.send_mail(claim))).await;
                    for error in sent.into_iter().filter_map(Result::err) {
                        log_error(
                            &error,
                            "failed to record the result of a portal mail; it may be sent again",
                        );
                    }
                }
                Err(error) => {
                    log_error(&error, "failed to claim portal mails, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    async fn send_mail(&self, claim: &MailClaim) -> Result<(), StoreError> {
        let (id, origin) = (claim.link.id, &self.core.addresses.public);
        let token = self.core.tokens.account_link_token(id);
        let link = if claim.is_taken {
            format!("{origin}/portal/sign-in")
        } else {
            format!("{origin}/portal/password?link={}", token.expose())
        };
        let mail = AccountMail {
            id,
            address: claim.email.clone(),
            purpose: claim.link.purpose,
            team: claim.team.clone(),
            link: Secret::new(link),
            is_taken: claim.is_taken,
            expires_at: claim.link.expires_at,
        };
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.mailer.mail(&mail)).await;
        let sent = sent.unwrap_or(Err(SendError::Transient("it took too long".into())));
        if let Err(error) = &sent {
            tracing::warn!(mail.id = %id, %error, "try {} to send a mail failed", claim.attempt);
        }
        let verdict = match sent {
            Ok(()) => NotificationOutcome::Sent { at: self.core.clock.now() },
            Err(SendError::Permanent { why, .. }) => self.failed(why),
            Err(SendError::Transient(_)) => self.later(claim.attempt),
        };
        metrics::counter!("avouch_portal_mails_total", "outcome" => word(verdict)).increment(1);
        // Where it is not settled, the link is gone or another process has it.
        self.account_links.settle_mail(claim, verdict).await.map(drop)
    }
}
