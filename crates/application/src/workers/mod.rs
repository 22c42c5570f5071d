//! The background loops of a process. Each polls at an interval, works in bounded batches, and ends
//! when the service stops.

mod account_link_mails;
mod account_notices;
mod browser_starter;
mod clock;
mod jobs;
mod key_uses;
mod links;
mod load;
mod mail_batches;
mod recordings;
mod retention;
mod retries;
mod statistics;
mod sweeper;

use async_trait::async_trait;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    account_link_mails::AccountLinkMails,
    account_notices::AccountNoticeMails,
    browser_starter::BrowserStarter,
    clock::{ClockAdjuster, ClockError, read_reference},
    jobs::{JOB_POLL_INTERVAL, JobExecutor, OutboxWorker},
    key_uses::KeyUseRecorder,
    links::{LinkComposer, LinkNotifications, LinkSender},
    load::LoadReporter,
    recordings::Recordings,
    retention::Retention,
    retries::RetryPolicy,
    statistics::StatisticsRecorder,
    sweeper::{SWEEP_BATCH, SWEEP_INTERVAL, SessionSweeper},
};

/// A background loop.
#[async_trait]
pub trait Worker: Send + Sync {
    /// Returns the name of the worker in log lines.
    fn name(&self) -> &'static str;

    /// Runs until it is dropped.
    async fn run(&self);
}

/// Spawns each worker as a task. All of them run until `stop` is cancelled, and end at their next
/// await then.
pub fn spawn(workers: Vec<Box<dyn Worker>>, stop: &CancellationToken, tasks: &TaskTracker) {
    for worker in workers {
        let stop = stop.clone();
        tasks.spawn(async move {
            if stop.run_until_cancelled(worker.run()).await.is_some() {
                let worker = worker.name();
                tracing::error!(worker, "a worker ended before the service was stopped");
            }
        });
    }
}

/// Logs an error with its causes.
pub(crate) fn log_error(error: &(dyn std::error::Error + 'static), what: &'static str) {
    tracing::error!(error, "{what}");
}

#[cfg(test)]
mod tests;
