//! Carries out the effects of transitions: starts and releases browsers, deletes recordings.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{id::InstanceId, session::Effect};
use ports::{
    browser::BrowserPool,
    clock::Clock,
    outbox::{ClaimOutcome, Outbox, OutboxClaim},
    recording::RecordingVault,
};
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

use super::{BrowserStarter, Worker, log_error};
use crate::{advance::AdvanceError, browser_turns::BrowserTurns};

const POLL_INTERVAL: Duration = Duration::from_millis(250);
const EFFECT_BATCH: u16 = 32;
const MAX_CONCURRENT_EFFECTS: usize = 64;
/// Longer than any effect takes.
const EFFECT_LEASE_TTL: TimeDelta = TimeDelta::seconds(90);
/// Attempts after which an effect is given up.
const MAX_EFFECT_ATTEMPTS: i32 = 20;

/// Claims the effects that this process can carry out, and runs them concurrently.
pub struct Effects {
    pub node: InstanceId,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    /// Notified when effects were saved.
    pub wakeup: Arc<Notify>,
    pub executor: Arc<EffectExecutor>,
    pub tasks: TaskTracker,
}

/// Carries out one effect at a time.
pub struct EffectExecutor {
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    pub pool: Arc<dyn BrowserPool>,
    pub turns: Arc<BrowserTurns>,
    pub vault: Arc<dyn RecordingVault>,
    pub browsers: BrowserStarter,
}

#[async_trait]
impl Worker for Effects {
    fn name(&self) -> &'static str {
        "effects"
    }

    async fn run(&self) {
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_EFFECTS));
        loop {
            let now = self.clock.now();
            match self.outbox.claim(self.node, now, EFFECT_LEASE_TTL, EFFECT_BATCH).await {
                Ok(claims) if claims.is_empty() => {
                    let _ = tokio::time::timeout(POLL_INTERVAL, self.wakeup.notified()).await;
                }
                Ok(claims) => {
                    for claim in claims {
                        let Ok(permit) = slots.clone().acquire_owned().await else { return };
                        let executor = self.executor.clone();
                        self.tasks.spawn(async move {
                            executor.execute(&claim).await;
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
}

impl EffectExecutor {
    /// Carries out a claimed effect and records its outcome.
    pub(super) async fn execute(&self, claim: &OutboxClaim) {
        let outcome = match self.effect(claim).await {
            Ok(outcome) => outcome,
            Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => ClaimOutcome::Done,
            Err(error) => {
                log_error(&error, "failed to carry out an effect of a session");
                let delay = TimeDelta::seconds(i64::from(claim.attempt.clamp(1, 60)));
                if claim.attempt >= MAX_EFFECT_ATTEMPTS {
                    ClaimOutcome::Buried
                } else {
                    ClaimOutcome::RetryAt(self.clock.now() + delay)
                }
            }
        };
        if let Err(error) = self.outbox.complete(claim, outcome).await {
            log_error(&error, "failed to record the result of an effect; it is carried out again");
        }
    }

    async fn effect(&self, claim: &OutboxClaim) -> Result<ClaimOutcome, AdvanceError> {
        match claim.effect {
            Effect::StartBrowser { lease } => self.browsers.start(claim, lease).await,
            Effect::ReleaseBrowser { lease } => {
                self.turns.ended(lease.browser);
                self.pool.release(lease.browser).await;
                Ok(ClaimOutcome::Done)
            }
            Effect::ForgetRecording => {
                self.vault.delete_all(claim.session).await?;
                Ok(ClaimOutcome::Done)
            }
            // The store carried these out in the transaction that saved them.
            Effect::NotifyPartner
            | Effect::SendLink
            | Effect::EraseCopies
            | Effect::KeepRecording => Ok(ClaimOutcome::Done),
        }
    }
}
