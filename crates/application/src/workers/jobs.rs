//! Carries out the jobs of transitions: starts and releases browsers, deletes recordings.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::TimeDelta;
use domain::{id::InstanceId, session::Job};
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

/// How often each instance looks for jobs that are due, unless it is woken.
pub const JOB_POLL_INTERVAL: Duration = Duration::from_millis(250);
const JOB_BATCH: u16 = 32;
/// Jobs at once beside those that start browsers, as many of which as there are turns may take long.
const MAX_CONCURRENT_JOBS: usize = 64;
/// Longer than any job takes.
pub(super) const JOB_LEASE_TTL: TimeDelta = TimeDelta::seconds(90);
/// How long after the store failed the result of a job is recorded again.
const RECORD_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long recording the result of a job is tried. Less than the lease of the job, after which it is carried
/// out again in any case.
const MAX_RECORD_TIME: Duration = Duration::from_secs(60);

/// Claims the jobs that this process can carry out, and runs them concurrently.
pub struct OutboxWorker {
    pub node: InstanceId,
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    /// Notified when jobs were saved.
    pub wakeup: Arc<Notify>,
    pub executor: Arc<JobExecutor>,
    pub tasks: TaskTracker,
}

/// Carries out one job at a time.
pub struct JobExecutor {
    pub outbox: Arc<dyn Outbox>,
    pub clock: Arc<dyn Clock>,
    pub pool: Arc<dyn BrowserPool>,
    pub turns: Arc<BrowserTurns>,
    pub vault: Arc<dyn RecordingVault>,
    pub browsers: BrowserStarter,
}

#[async_trait]
impl Worker for OutboxWorker {
    fn name(&self) -> &'static str {
        "jobs"
    }

    async fn run(&self) {
        // A session whose job waits for slow starts would lose its lease.
        let starts = self.executor.turns.load(self.clock.now()).total;
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_JOBS.saturating_add(starts)));
        loop {
            let now = self.clock.now();
            match self.outbox.claim(self.node, now, JOB_LEASE_TTL, JOB_BATCH).await {
                Ok(claims) if claims.is_empty() => {
                    let _ = tokio::time::timeout(JOB_POLL_INTERVAL, self.wakeup.notified()).await;
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
                    log_error(&error, "failed to claim jobs, retrying");
                    tokio::time::sleep(JOB_POLL_INTERVAL).await;
                }
            }
        }
    }
}

/// Counts an attempt at a job. A job that waits for its turn is put off.
fn count_attempt(claim: &OutboxClaim, outcome: ClaimOutcome) {
    let outcome = match outcome {
        ClaimOutcome::Done => "done",
        ClaimOutcome::RetryAt(_) => "put_off",
        ClaimOutcome::Buried => "given_up",
    };
    // Not `job`, which Prometheus sets itself.
    let kind = claim.job.name();
    metrics::counter!("avouch_job_attempts_total", "kind" => kind, "outcome" => outcome)
        .increment(1);
}

impl JobExecutor {
    /// Carries out a claimed job and records its outcome.
    pub(super) async fn execute(&self, claim: &OutboxClaim) {
        let outcome = match self.job(claim).await {
            Ok(outcome) => outcome,
            Err(AdvanceError::Rejected(_) | AdvanceError::NotFound) => ClaimOutcome::Done,
            Err(error) => self.failed(claim, &error),
        };
        count_attempt(claim, outcome);
        self.record(claim, outcome).await;
    }

    /// Records the outcome of a job, and tries again while the store fails: nobody carries the job out until
    /// then or until the end of its lease, and a session that waits for a browser has lost its own lease by
    /// that time. A claim that was lost meanwhile stays as it is.
    async fn record(&self, claim: &OutboxClaim, outcome: ClaimOutcome) {
        let recorded = async {
            while let Err(error) = self.outbox.complete(claim, outcome).await {
                log_error(&error, "failed to record the result of a job, retrying");
                tokio::time::sleep(RECORD_RETRY_DELAY).await;
            }
        };
        if tokio::time::timeout(MAX_RECORD_TIME, recorded).await.is_err() {
            tracing::error!(
                session.id = %claim.session, job = claim.job.name(),
                "gave up recording the result of a job; it is carried out again after its lease"
            );
        }
    }

    /// Decides whether a job that failed is tried again.
    fn failed(&self, claim: &OutboxClaim, error: &AdvanceError) -> ClaimOutcome {
        let error: &dyn std::error::Error = error;
        let (job, attempt) = (claim.job.name(), claim.attempt);
        if let Some(delay) = claim.job.retry_delay(attempt) {
            tracing::error!(
                session.id = %claim.session, job, attempt, error,
                "failed to carry out a job of a session, retrying"
            );
            return ClaimOutcome::RetryAt(self.clock.now() + delay);
        }
        tracing::error!(
            session.id = %claim.session, job, attempt, error,
            "gave up a job of a session; it stays in the outbox, marked as buried"
        );
        ClaimOutcome::Buried
    }

    async fn job(&self, claim: &OutboxClaim) -> Result<ClaimOutcome, AdvanceError> {
        match claim.job {
            Job::StartBrowser { lease } => self.browsers.start(claim, lease).await,
            Job::ReleaseBrowser { lease } => {
                self.turns.finished(lease.browser, self.clock.now());
                self.pool.release(lease.browser).await;
                Ok(ClaimOutcome::Done)
            }
            Job::ForgetRecording => {
                self.vault.delete_all(claim.session).await?;
                Ok(ClaimOutcome::Done)
            }
        }
    }
}
