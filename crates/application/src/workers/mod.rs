//! The loops that carry out what was saved. Each has a pace, a bound, and an end.

mod account_links;
mod links;
mod notices;
mod recordings;
mod start;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{
    session::{Effect, Event},
    webhook::Backoff,
};
use ports::{
    account_links::AccountLinkStore,
    account_store::SignInStore,
    brand_store::BrandStore,
    browser::BrowserPool,
    delivery_log::DeliveryLog,
    key_store::KeyStore,
    known_browsers::KnownBrowserStore,
    notice_store::NoticeStore,
    notifier::{Mailer, NotificationQueue, Notifier},
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
    places::Places,
    recording::{Encoder, RecordingQueue, RecordingVault},
    session_store::DueReason,
    suppression_store::SuppressionStore,
    template_store::TemplateStore,
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    advance::{AdvanceError, Core},
    api_keys::KeyUses,
    delivery::WebhookDispatcher,
};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);
const EFFECT_BATCH: u16 = 32;
const MAX_CONCURRENT_EFFECTS: usize = 64;
/// Longer than any effect takes.
const EFFECT_LEASE_TTL: TimeDelta = TimeDelta::seconds(90);
const MAX_START_FAILURES: u32 = 5;
const START_RETRY_DELAY: TimeDelta = TimeDelta::seconds(3);
const MAX_EFFECT_ATTEMPTS: i32 = 20;
/// Effects for a process that has been gone for so long are dropped.
const ORPHAN_AGE: TimeDelta = TimeDelta::minutes(10);

/// Everything the loops work with.
#[derive(Clone)]
pub struct Workers {
    pub core: Arc<Core>,
    pub outbox: Arc<dyn Outbox>,
    pub dispatcher: WebhookDispatcher,
    pub log: Arc<dyn DeliveryLog>,
    pub pool: Arc<dyn BrowserPool>,
    /// How long a session waits for a browser.
    pub queue_patience: TimeDelta,
    pub places: Arc<dyn Places>,
    pub recordings: Arc<dyn RecordingQueue>,
    pub vault: Arc<dyn RecordingVault>,
    pub encoder: Arc<dyn Encoder>,
    pub notifications: Arc<dyn NotificationQueue>,
    pub notifier: Arc<dyn Notifier>,
    pub account_links: Arc<dyn AccountLinkStore>,
    pub notices: Arc<dyn NoticeStore>,
    pub mailer: Arc<dyn Mailer>,
    pub link_backoff: Backoff,
    pub keys: Arc<dyn KeyStore>,
    pub templates: Arc<dyn TemplateStore>,
    pub brands: Arc<dyn BrandStore>,
    pub suppressions: Arc<dyn SuppressionStore>,
    pub uses: Arc<KeyUses>,
    pub sign_ins: Arc<dyn SignInStore>,
    pub browsers: Arc<dyn KnownBrowserStore>,
    /// How long a closed session keeps its data.
    pub retention: TimeDelta,
    pub stop: CancellationToken,
    pub tasks: TaskTracker,
}

pub fn log_error(error: &(dyn std::error::Error + 'static), what: &'static str) {
    tracing::error!(error, "{what}");
}

impl Workers {
    /// Starts all workers. Each runs until `stop`, and then ends at its next await.
    pub fn start(&self) {
        self.spawn("effects", |me| async move { me.run_effects().await });
        self.spawn("deliveries", |me| async move { me.dispatcher.deliver().await });
        self.spawn("old deliveries", |me| async move { me.dispatcher.give_up().await });
        self.spawn("expired sessions", |me| async move { me.sweep().await });
        self.spawn("recordings", |me| async move { me.make_films().await });
        self.spawn("links", |me| async move { me.send_links().await });
        self.spawn("key uses", |me| async move { me.record_key_uses().await });
        self.spawn("portal mails", |me| async move { me.send_mails().await });
        self.spawn("notification mails", |me| async move { me.send_notices().await });
        self.spawn("retention", |me| async move { me.delete_expired().await });
    }

    fn spawn<F: Future<Output = ()> + Send + 'static>(
        &self,
        worker: &'static str,
        run: impl FnOnce(Self) -> F,
    ) {
        let (work, stop) = (run(self.clone()), self.stop.clone());
        self.tasks.spawn(async move {
            if stop.run_until_cancelled(work).await.is_some() {
                tracing::error!(worker, "a worker ended before the service was stopped");
            }
        });
    }

    async fn run_effects(&self) {
        let room = Arc::new(Semaphore::new(MAX_CONCURRENT_EFFECTS));
        loop {
            let now = self.core.clock.now();
            match self.outbox.claim(self.core.node, now, EFFECT_LEASE_TTL, EFFECT_BATCH).await {
                Ok(claims) if claims.is_empty() => {
                    let _ = tokio::time::timeout(POLL_INTERVAL, self.core.effects.notified()).await;
                }
                Ok(claims) => {
                    for claim in claims {
                        let Ok(permit) = room.clone().acquire_owned().await else { return };
                        let me = self.clone();
                        self.tasks.spawn(async move {
                            me.run_effect(&claim).await;
                            drop(permit);
                        });
                    }
                }
                Err(error) => {
                    log_error(&error, "failed to claim effects, retrying");
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            }
        }
    }

    async fn run_effect(&self, claim: &OutboxClaim) {
        let verdict = match self.effect(claim).await {
            Ok(verdict) => verdict,
            Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => ClaimOutcome::Done,
            Err(error) => {
                log_error(&error, "failed to carry out an effect of a session");
                let later = TimeDelta::seconds(i64::from(claim.attempt.clamp(1, 60)));
                if claim.attempt >= MAX_EFFECT_ATTEMPTS {
                    ClaimOutcome::Buried
                } else {
                    ClaimOutcome::RetryAt(self.core.clock.now() + later)
                }
            }
        };
        if let Err(error) = self.outbox.complete(claim, verdict).await {
            log_error(&error, "failed to record the result of an effect; it is carried out again");
        }
    }

    async fn effect(&self, claim: &OutboxClaim) -> Result<ClaimOutcome, AdvanceError> {
        match claim.effect {
            Effect::StartBrowser { lease } => self.start_browser(claim, lease).await,
            Effect::ReleaseBrowser { lease } => {
                self.core.queue().ended(lease.browser);
                self.pool.release(lease.browser).await;
                Ok(ClaimOutcome::Done)
            }
            Effect::ForgetRecording => {
                self.vault.delete_all(claim.session).await?;
                Ok(ClaimOutcome::Done)
            }
            // Done in the transaction that saved them.
            Effect::NotifyPartner
            | Effect::SendLink
            | Effect::EraseCopies
            | Effect::KeepRecording => Ok(ClaimOutcome::Done),
        }
    }

    async fn sweep(&self) {
        loop {
            if let Err(error) = self.sweep_once().await {
                log_error(&error, "failed to end expired sessions, retrying");
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
        }
    }

    async fn sweep_once(&self) -> Result<(), AdvanceError> {
        let now = self.core.clock.now();
        for (session, due) in self.core.sessions.find_due(now, 200).await? {
            let moved = match due {
                DueReason::Expired => self.core.advance(session.id, None, Event::Expired).await,
                DueReason::BrowserLapsed(browser) => {
                    self.core.advance(session.id, Some(browser), Event::BrowserLost).await
                }
            };
            match moved {
                Ok(_) | Err(AdvanceError::Rejected(_)) => (),
                Err(error) => return Err(error),
            }
        }
        self.outbox.delete_orphans(self.core.node, now - ORPHAN_AGE).await?;
        Ok(())
    }
}
