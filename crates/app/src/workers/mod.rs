//! The loops that carry out what was saved. Each has a pace, a bound, and an end.

mod films;
mod links;
mod mails;
mod notices;
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
    outbox::{Claim, Outbox, Verdict},
    places::Places,
    recording::{Encoder, RecordingQueue, RecordingVault},
    session_store::Due,
    suppression_store::SuppressionStore,
    template_store::TemplateStore,
};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    advance::{Core, Stuck},
    delivery::WebhookDispatcher,
    keys::KeyUses,
};

const POLL: Duration = Duration::from_millis(250);
const SWEEP: Duration = Duration::from_millis(500);
const BATCH: u16 = 32;
const AT_ONCE: usize = 64;
/// Longer than any effect takes.
const EFFECT_LEASE: TimeDelta = TimeDelta::seconds(90);
const MAX_START_FAILURES: u32 = 5;
const START_PAUSE: TimeDelta = TimeDelta::seconds(3);
const EFFECT_ATTEMPTS: i32 = 20;
/// Effects for a process that has been gone for so long are dropped.
const ORPHANED: TimeDelta = TimeDelta::minutes(10);

/// Everything the loops work with.
#[derive(Clone)]
pub(crate) struct Workers {
    pub(crate) core: Arc<Core>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) dispatcher: WebhookDispatcher,
    pub(crate) log: Arc<dyn DeliveryLog>,
    pub(crate) pool: Arc<dyn BrowserPool>,
    /// How long a session waits for a browser.
    pub(crate) queue_patience: TimeDelta,
    pub(crate) places: Arc<dyn Places>,
    pub(crate) recordings: Arc<dyn RecordingQueue>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) encoder: Arc<dyn Encoder>,
    pub(crate) notifications: Arc<dyn NotificationQueue>,
    pub(crate) notifier: Arc<dyn Notifier>,
    pub(crate) account_links: Arc<dyn AccountLinkStore>,
    pub(crate) notices: Arc<dyn NoticeStore>,
    pub(crate) mailer: Arc<dyn Mailer>,
    pub(crate) link_backoff: Backoff,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) templates: Arc<dyn TemplateStore>,
    pub(crate) brands: Arc<dyn BrandStore>,
    pub(crate) suppressions: Arc<dyn SuppressionStore>,
    pub(crate) uses: Arc<KeyUses>,
    pub(crate) sign_ins: Arc<dyn SignInStore>,
    pub(crate) browsers: Arc<dyn KnownBrowserStore>,
    /// How long a closed session keeps its data.
    pub(crate) retention: TimeDelta,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

pub(crate) fn complain(error: &(dyn std::error::Error + 'static), what: &'static str) {
    tracing::error!(error, "{what}");
}

impl Workers {
    pub(crate) fn start(&self) {
        for worker in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] {
            let me = self.clone();
            self.tasks.spawn(async move {
                let stop = me.stop.clone();
                let work = async {
                    match worker {
                        0 => me.carry_out().await,
                        1 => me.dispatcher.deliver().await,
                        4 => me.dispatcher.give_up().await,
                        2 => me.sweep().await,
                        3 => me.make_films().await,
                        5 => me.send_links().await,
                        6 => me.note_uses().await,
                        7 => me.send_mails().await,
                        8 => me.send_notices().await,
                        _ => me.forget().await,
                    }
                };
                let _ = stop.run_until_cancelled(work).await;
            });
        }
    }

    async fn carry_out(&self) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let now = self.core.clock.now();
            match self.outbox.claim(self.core.node, now, EFFECT_LEASE, BATCH).await {
                Ok(claims) if claims.is_empty() => {
                    let _ = tokio::time::timeout(POLL, self.core.effects.notified()).await;
                }
                Ok(claims) => {
                    for claim in claims {
                        let Ok(permit) = room.clone().acquire_owned().await else { return };
                        let me = self.clone();
                        self.tasks.spawn(async move {
                            me.carry_out_one(&claim).await;
                            drop(permit);
                        });
                    }
                }
                Err(error) => {
                    complain(&error, "effects could not be claimed");
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    async fn carry_out_one(&self, claim: &Claim) {
        let verdict = match self.effect(claim).await {
            Ok(verdict) => verdict,
            Err(Stuck::Rejected(_) | Stuck::NotFound) => Verdict::Done,
            Err(error) => {
                complain(&error, "an effect could not be carried out");
                let later = TimeDelta::seconds(i64::from(claim.attempt.clamp(1, 60)));
                if claim.attempt >= EFFECT_ATTEMPTS {
                    Verdict::Buried
                } else {
                    Verdict::RetryAt(self.core.clock.now() + later)
                }
            }
        };
        if let Err(error) = self.outbox.settle(claim, verdict).await {
            complain(&error, "an effect could not be settled");
        }
    }

    async fn effect(&self, claim: &Claim) -> Result<Verdict, Stuck> {
        match claim.effect {
            Effect::StartBrowser { lease } => self.start_browser(claim, lease).await,
            Effect::ReleaseBrowser { lease } => {
                self.core.queue().ended(lease.browser);
                self.pool.release(lease.browser).await;
                Ok(Verdict::Done)
            }
            Effect::ForgetRecording => {
                self.vault.forget(claim.session).await?;
                Ok(Verdict::Done)
            }
            // Done in the transaction that saved them.
            Effect::NotifyPartner
            | Effect::SendLink
            | Effect::EraseCopies
            | Effect::KeepRecording => Ok(Verdict::Done),
        }
    }

    async fn sweep(&self) {
        loop {
            if let Err(error) = self.sweep_once().await {
                complain(&error, "sessions that are due could not be seen to");
            }
            tokio::time::sleep(SWEEP).await;
        }
    }

    async fn sweep_once(&self) -> Result<(), Stuck> {
        let now = self.core.clock.now();
        for (session, due) in self.core.sessions.due(now, 200).await? {
            let moved = match due {
                Due::Expired => self.core.advance(session.id, None, Event::Expired).await,
                Due::BrowserLapsed(browser) => {
                    self.core.advance(session.id, Some(browser), Event::BrowserLost).await
                }
            };
            match moved {
                Ok(_) | Err(Stuck::Rejected(_)) => (),
                Err(error) => return Err(error),
            }
        }
        self.outbox.drop_orphans(self.core.node, now - ORPHANED).await?;
        Ok(())
    }
}
