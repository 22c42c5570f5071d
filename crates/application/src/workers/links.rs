//! Sends applicants the links of their sessions.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{
    binding::JoinedBy,
    id::{TeamId, TemplateId},
    language::Language,
    notification::{Channel, Mailbox, NotificationFailure},
    request::Contact,
    session::{Session, State},
    template::TemplateText,
};
use ports::{
    StoreError,
    brand_store::BrandStore,
    catalogue::Catalogue,
    key_store::KeyStore,
    notifier::{
        Notification, NotificationClaim, NotificationOutcome, NotificationQueue, Notifier,
        SendError,
    },
    session_store::SessionStore,
    suppression_store::SuppressionStore,
    template_store::TemplateStore,
};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::task::TaskTracker;

use super::{RetryPolicy, Worker, log_error, retries::metric_label};
use crate::{
    live::{SessionDevices, with_code},
    session_traces::{NotificationAttempt, SessionTraces},
    urls::Urls,
};

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_CONCURRENT: usize = 16;
const NOTIFICATION_BATCH: u16 = 16;
/// How long sending one notification may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(90);
/// Longer than [`SEND_TIMEOUT`], so that no two processes send the same notification at a time.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(150);

/// Claims notifications, and sends them concurrently.
pub struct LinkNotifications {
    pub queue: Arc<dyn NotificationQueue>,
    pub sender: Arc<LinkSender>,
    pub tasks: TaskTracker,
}

/// Sends one notification.
pub struct LinkSender {
    pub queue: Arc<dyn NotificationQueue>,
    pub composer: LinkComposer,
    pub suppressions: Arc<dyn SuppressionStore>,
    pub notifier: Arc<dyn Notifier>,
    pub retries: RetryPolicy,
    pub traces: SessionTraces,
}

/// Composes the notification of a session.
pub struct LinkComposer {
    pub sessions: Arc<dyn SessionStore>,
    pub catalogue: Arc<dyn Catalogue>,
    pub keys: Arc<dyn KeyStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub urls: Arc<Urls>,
    pub devices: Arc<SessionDevices>,
}

/// A notification, and the mailbox that may be suppressed. Text messages have none: their carrier
/// suppresses recipients.
struct Addressed {
    notification: Notification,
    mailbox: Option<Mailbox>,
}

#[async_trait]
impl Worker for LinkNotifications {
    fn name(&self) -> &'static str {
        "links"
    }

    async fn run(&self) {
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let mut last = None;
        loop {
            // No more are claimed than there are free slots, so that each is sent within its lease.
            drop(slots.acquire().await);
            let free = u16::try_from(slots.available_permits()).unwrap_or(NOTIFICATION_BATCH);
            let now = self.sender.retries.clock.now();
            let limit = free.min(NOTIFICATION_BATCH);
            match self.queue.claim_notifications(now, LEASE_TTL, limit, last).await {
                Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
                Ok(claims) => {
                    last = claims.last().map(|claim| claim.team);
                    for claim in claims {
                        let Ok(permit) = slots.clone().acquire_owned().await else { return };
                        let sender = self.sender.clone();
                        self.tasks.spawn(async move {
                            if let Err(error) = sender.send(&claim).await {
                                log_error(
                                    &error,
                                    "failed to record the result of a link; it may be sent again",
                                );
                            }
                            drop(permit);
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
}

impl LinkSender {
    pub(super) async fn send(&self, claim: &NotificationClaim) -> Result<(), StoreError> {
        let (at, began) = (self.retries.clock.now(), Instant::now());
        let (channel, outcome) = self.attempt(claim).await?;
        let attempt = NotificationAttempt { at, took: began.elapsed(), channel, outcome };
        self.traces.notified(claim, &attempt);
        let label = metric_label(outcome);
        metrics::counter!("avouch_link_attempts_total", "outcome" => label).increment(1);
        if !self.queue.settle_notification(claim, outcome).await? {
            tracing::warn!(notification.id = %claim.id, "discarded the result of a link: another process has claimed it");
        }
        Ok(())
    }

    /// Sends the notification where it is still wanted. Returns its channel, if it was composed,
    /// and the outcome.
    async fn attempt(
        &self,
        claim: &NotificationClaim,
    ) -> Result<(Option<Channel>, NotificationOutcome), StoreError> {
        let Some(Addressed { notification, mailbox }) = self.composer.compose(claim).await? else {
            return Ok((None, self.retries.failed(NotificationFailure::SessionEnded)));
        };
        let channel = Some(notification.channel);
        if let Some(mailbox) = mailbox
            && self.suppressions.is_suppressed(&mailbox).await?
        {
            return Ok((channel, self.retries.failed(NotificationFailure::Unsubscribed)));
        }
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.notifier.send(&notification)).await;
        let sent = sent.unwrap_or(Err(SendError::Transient("it took too long".into())));
        if let Err(error) = &sent {
            tracing::warn!(
                session.id = %claim.session, notification.id = %claim.id, %error,
                "attempt {} to send a link failed", claim.attempt
            );
        }
        Ok((channel, self.retries.outcome(&sent, claim.attempt)))
    }
}

impl LinkComposer {
    /// Returns the template that the session names, or the team's default template in the contact's
    /// language; `None` means the service's own text.
    async fn wording(
        &self,
        team: TeamId,
        named: Option<TemplateId>,
        contact: &Contact,
    ) -> Result<Option<TemplateText>, StoreError> {
        if let Some(id) = named
            && let Some(stored) = self.templates.template(team, id).await?
        {
            return Ok(Some(stored.draft.wording));
        }
        let language = Language::of(contact.locale.as_deref());
        let default = self.templates.default_template(team, language).await?;
        Ok(default.map(|stored| stored.draft.wording))
    }

    /// Returns the link of a session. Once the session has started it may be bound to a device, and
    /// the link has a code with which the device that opens it joins.
    async fn link(&self, session: &Session) -> Result<String, StoreError> {
        let link = self.urls.embed_url(session);
        if session.state == State::START {
            return Ok(link);
        }
        let code = self.devices.offer_code(session.id, JoinedBy::SentCode).await?;
        Ok(with_code(&link, &code.long))
    }

    /// Composes the notification; `None` where its session has ended, or has no address any more.
    async fn compose(&self, claim: &NotificationClaim) -> Result<Option<Addressed>, StoreError> {
        let Some(session) = self.sessions.find_unscoped(claim.session).await? else {
            return Ok(None);
        };
        let is_over = session.state.is_closed() || self.urls.clock.now() >= session.expires_at;
        let terms = &session.terms;
        let (Some(invitation), Some(contact), false) =
            (&terms.invitation, &terms.receiver, is_over)
        else {
            return Ok(None);
        };
        let Some(address) = invitation.channel.address(contact) else { return Ok(None) };
        let platform = self.catalogue.platform(terms.platform).await?;
        let Some(key) = self.keys.key(session.owner).await? else { return Ok(None) };
        let wording = self.wording(key.team, invitation.template, contact).await?;
        let language = Language::of(contact.locale.as_deref());
        let mailbox = self.urls.tokens.mailbox(key.team, address);
        let token = self.urls.tokens.mailbox_token(&mailbox);
        let origin = &self.urls.addresses.public;
        let notification = Notification {
            id: claim.id,
            channel: invitation.channel,
            address: address.to_owned(),
            name: contact.name.clone(),
            locale: contact.locale.clone(),
            sender: invitation.sender.clone(),
            wording,
            brand: self.brands.brand(key.team).await?,
            platform: platform.map_or_else(String::new, |platform| platform.display_name),
            link: self.link(&session).await?,
            choice: format!("{origin}/unsubscribe/{}?lang={language}", token.expose()),
            expires_at: session.expires_at,
        };
        let mailbox = (invitation.channel == Channel::Email).then_some(mailbox);
        Ok(Some(Addressed { notification, mailbox }))
    }
}
