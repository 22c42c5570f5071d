//! The loops that carry out what was saved. Each has a pace, a bound, and an end.

mod films;
mod start;

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use domain::{
    session::{Effect, Event},
    webhook::Backoff,
};
use ports::{
    StoreError,
    browser::BrowserPool,
    delivery::{Attempt, Delivery, DeliveryQueue},
    outbox::{Claim, Outbox, Verdict},
    places::Places,
    recording::{Encoder, RecordingQueue, RecordingVault},
    session_store::Due,
    webhook_sender::{Answer, WebhookSender},
};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::advance::{Core, Stuck};

const POLL: Duration = Duration::from_millis(250);
const SWEEP: Duration = Duration::from_millis(500);
const BATCH: u16 = 32;
const AT_ONCE: usize = 64;
/// Longer than any effect takes.
const EFFECT_LEASE: TimeDelta = TimeDelta::seconds(90);
/// Longer than the longest timeout of a webhook.
const DELIVERY_LEASE: TimeDelta = TimeDelta::seconds(150);
const START_ATTEMPTS: i32 = 5;
const ROOM_ATTEMPTS: i32 = 20;
const START_PAUSE: TimeDelta = TimeDelta::seconds(3);
const EFFECT_ATTEMPTS: i32 = 20;
/// Effects for a process that has been gone for so long are dropped.
const ORPHANED: TimeDelta = TimeDelta::minutes(10);

/// Everything the loops work with.
#[derive(Clone)]
pub(crate) struct Workers {
    pub(crate) core: Arc<Core>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) deliveries: Arc<dyn DeliveryQueue>,
    pub(crate) pool: Arc<dyn BrowserPool>,
    pub(crate) places: Arc<dyn Places>,
    pub(crate) recordings: Arc<dyn RecordingQueue>,
    pub(crate) vault: Arc<dyn RecordingVault>,
    pub(crate) encoder: Arc<dyn Encoder>,
    pub(crate) sender: Arc<dyn WebhookSender>,
    pub(crate) backoff: Backoff,
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
        for worker in [0, 1, 2, 3, 4] {
            let me = self.clone();
            self.tasks.spawn(async move {
                let stop = me.stop.clone();
                let work = async {
                    match worker {
                        0 => me.carry_out().await,
                        1 => me.deliver().await,
                        2 => me.sweep().await,
                        3 => me.make_films().await,
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
                self.pool.release(lease.browser).await;
                Ok(Verdict::Done)
            }
            Effect::RequestAttestation => {
                // No attestor is configured: the data is there, the proof is not.
                self.core.advance(claim.session, None, Event::AttestationRefused).await?;
                Ok(Verdict::Done)
            }
            Effect::ForgetRecording => {
                self.vault.forget(claim.session).await?;
                Ok(Verdict::Done)
            }
            // Done in the transaction that saved them.
            Effect::NotifyPartner | Effect::EraseCopies | Effect::KeepRecording => {
                Ok(Verdict::Done)
            }
        }
    }

    async fn deliver(&self) {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let now = self.core.clock.now();
            match self.deliveries.claim_deliveries(now, DELIVERY_LEASE, BATCH).await {
                Ok(claimed) if claimed.is_empty() => {
                    let _ = tokio::time::timeout(POLL, self.core.deliveries.notified()).await;
                }
                Ok(claimed) => {
                    for delivery in claimed {
                        let Ok(permit) = room.clone().acquire_owned().await else { return };
                        let me = self.clone();
                        self.tasks.spawn(async move {
                            if let Err(error) = me.deliver_one(&delivery).await {
                                complain(&error, "a delivery could not be settled");
                            }
                            drop(permit);
                        });
                    }
                }
                Err(error) => {
                    complain(&error, "deliveries could not be claimed");
                    tokio::time::sleep(POLL).await;
                }
            }
        }
    }

    async fn deliver_one(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let (at, began) = (self.core.clock.now(), Instant::now());
        let answer = self.sender.send(delivery, at).await;
        let verdict = self.judge(delivery, &answer);
        let attempt = Attempt { at, took: began.elapsed(), answer };
        let (id, session, n) = (delivery.id, delivery.session, delivery.attempt);
        let outcome = match &attempt.answer {
            Answer::Status { code: 200..=299, .. } => "delivered",
            Answer::Status { .. } => "refused",
            Answer::Failed(class) => class,
        };
        metrics::counter!("avouch_delivery_attempts_total", "outcome" => outcome).increment(1);
        match &attempt.answer {
            Answer::Status { code, .. } => tracing::info!(
                delivery.id = %id, session.id = %session,
                "attempt {n} of delivery {id} was answered {code}"
            ),
            Answer::Failed(class) => tracing::warn!(
                delivery.id = %id, session.id = %session, class,
                "attempt {n} of delivery {id} failed"
            ),
        }
        self.deliveries.settle_delivery(delivery, &attempt, verdict).await.map(drop)
    }

    fn judge(&self, delivery: &Delivery, answer: &Answer) -> Verdict {
        let (code, asked) = match answer {
            Answer::Status { code: 200..=299, .. } => return Verdict::Done,
            Answer::Status { code, retry_after, .. } => (Some(*code), *retry_after),
            Answer::Failed(_) => (None, None),
        };
        let retries_made = delivery.attempt.saturating_sub(1);
        if code == Some(410) || retries_made >= i32::from(delivery.webhook.retries) {
            return Verdict::Buried;
        }
        let attempt = u32::try_from(delivery.attempt).unwrap_or(1);
        let wait = self.backoff.after(attempt, self.core.chance.number());
        let wait = wait.max(asked.unwrap_or_default());
        let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6));
        Verdict::RetryAt(self.core.clock.now() + wait)
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
