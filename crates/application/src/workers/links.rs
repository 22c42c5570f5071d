//! Sends applicants the links of their sessions.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{
    binding::JoinedBy,
    id::{TeamId, TemplateId},
    language::Language,
    notification::{Channel, MAX_NOTIFICATION_ATTEMPTS, Mailbox, NotificationFailure},
    request::Contact,
    session::{Session, State},
    template::TemplateText,
};
use ports::{
    StoreError,
    notifier::{Notification, NotificationClaim, NotificationOutcome, SendError},
};
use tokio::sync::Semaphore;

use super::{Workers, log_error};
use crate::live::with_code;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_CONCURRENT: usize = 16;
const BATCH: u16 = 16;
/// How long one letter may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(90);
/// Longer than that: a letter is not sent by two at a time.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(150);

/// A letter, and whose choice it is to get it; none: who carries it on asks for that.
struct Addressing {
    letter: Notification,
    mailbox: Option<Mailbox>,
}

/// What became of a try, as metrics have it.
pub(super) const fn word(verdict: NotificationOutcome) -> &'static str {
    match verdict {
        NotificationOutcome::Sent { .. } => "sent",
        NotificationOutcome::RetryAt(_) => "put_off",
        NotificationOutcome::Failed { .. } => "failed",
    }
}

impl Workers {
    pub(crate) async fn send_links(&self) {
        let room = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let mut last = None;
        loop {
            // No more than there are places for: what is claimed is sent at once, in its lease.
            drop(room.acquire().await);
            let free = u16::try_from(room.available_permits()).unwrap_or(BATCH);
            let now = self.core.clock.now();
            let claims =
                self.notifications.claim_notifications(now, LEASE_TTL, free.min(BATCH), last);
            match claims.await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    last = claims.last().map(|claim| claim.team);
                    for claim in claims {
                        let Ok(place) = room.clone().acquire_owned().await else { return };
                        let me = self.clone();
                        self.tasks.spawn(async move {
                            if let Err(error) = me.send_link(&claim).await {
                                log_error(
                                    &error,
                                    "failed to record the result of a link; it may be sent again",
                                );
                            }
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    log_error(&error, "failed to claim links, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    async fn send_link(&self, claim: &NotificationClaim) -> Result<(), StoreError> {
        let session = claim.session;
        let verdict = match self.letter(claim).await? {
            None => self.failed(NotificationFailure::SessionEnded),
            Some(Addressing { mailbox: Some(mailbox), .. })
                if self.suppressions.is_suppressed(&mailbox).await? =>
            {
                self.failed(NotificationFailure::Unsubscribed)
            }
            Some(Addressing { letter, .. }) => {
                let sent = tokio::time::timeout(SEND_TIMEOUT, self.notifier.send(&letter)).await;
                let sent = sent.unwrap_or(Err(SendError::Transient("it took too long".into())));
                if let Err(error) = &sent {
                    tracing::warn!(
                        session.id = %session, notification.id = %claim.id, %error,
                        "try {} to send a link failed", claim.attempt
                    );
                }
                match sent {
                    Ok(()) => NotificationOutcome::Sent { at: self.core.clock.now() },
                    Err(SendError::Permanent { why, .. }) => self.failed(why),
                    Err(SendError::Transient(_)) => self.later(claim.attempt),
                }
            }
        };
        metrics::counter!("avouch_links_total", "outcome" => word(verdict)).increment(1);
        if !self.notifications.settle_notification(claim, verdict).await? {
            tracing::warn!(notification.id = %claim.id, "another process has a link meanwhile");
        }
        Ok(())
    }

    pub(super) fn failed(&self, why: NotificationFailure) -> NotificationOutcome {
        NotificationOutcome::Failed { at: self.core.clock.now(), why }
    }

    /// Once more, or never.
    pub(super) fn later(&self, attempt: i32) -> NotificationOutcome {
        if attempt >= MAX_NOTIFICATION_ATTEMPTS {
            return self.failed(NotificationFailure::Unreachable);
        }
        let wait = self.link_backoff.after(attempt.unsigned_abs(), self.core.random.random_u16());
        let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6));
        NotificationOutcome::RetryAt(self.core.clock.now() + wait)
    }

    /// The template that was asked for, the team's default in the receiver's language, or none of
    /// the team's.
    async fn wording(
        &self,
        team: TeamId,
        asked: Option<TemplateId>,
        receiver: &Contact,
    ) -> Result<Option<TemplateText>, StoreError> {
        if let Some(id) = asked
            && let Some(kept) = self.templates.template(team, id).await?
        {
            return Ok(Some(kept.draft.wording));
        }
        let language = Language::of(receiver.locale.as_deref());
        let default = self.templates.default_template(team, language).await?;
        Ok(default.map(|kept| kept.draft.wording))
    }

    /// The link of a session; once it is bound to a device, with a code that lets the device that
    /// opens it join.
    async fn link(&self, session: &Session) -> Result<String, StoreError> {
        let link = self.core.embed_url(session);
        if matches!(session.state, State::Created { losses: 0 }) {
            return Ok(link);
        }
        let code = self.core.offer_code(session.id, JoinedBy::SentCode).await?;
        Ok(with_code(&link, &code.long))
    }

    /// What the applicant is told; none where there is no use in it any more.
    async fn letter(&self, claim: &NotificationClaim) -> Result<Option<Addressing>, StoreError> {
        let Some(session) = self.core.sessions.find_unscoped(claim.session).await? else {
            return Ok(None);
        };
        let over = session.state.is_closed() || self.core.clock.now() >= session.expires_at;
        let order = &session.terms;
        let (Some(invitation), Some(receiver), false) = (&order.invitation, &order.receiver, over)
        else {
            return Ok(None);
        };
        let Some(address) = invitation.channel.address(receiver) else { return Ok(None) };
        let platform = self.core.catalogue.platform(order.platform).await?;
        let Some(key) = self.keys.key(session.owner).await? else { return Ok(None) };
        let wording = self.wording(key.team, invitation.template, receiver).await?;
        let language = Language::of(receiver.locale.as_deref());
        let mailbox = self.core.tokens.mailbox(key.team, address);
        let token = self.core.tokens.mailbox_token(&mailbox);
        let origin = &self.core.addresses.public;
        let letter = Notification {
            id: claim.id,
            channel: invitation.channel,
            address: address.to_owned(),
            name: receiver.name.clone(),
            locale: receiver.locale.clone(),
            sender: invitation.sender.clone(),
            wording,
            brand: self.brands.brand(key.team).await?,
            platform: platform.map_or_else(String::new, |platform| platform.display_name),
            link: self.link(&session).await?,
            choice: format!("{origin}/unsubscribe/{}?lang={language}", token.expose()),
            expires_at: session.expires_at,
        };
        let mailbox = (invitation.channel == Channel::Email).then_some(mailbox);
        Ok(Some(Addressing { letter, mailbox }))
    }
}
