//! The loop of the workers that mail members of teams: claims a batch, sends its mails at the same
//! time, records the outcomes.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use ports::{
    StoreError,
    notifier::{NotificationOutcome, SendError},
};

use super::{
    log_error,
    retries::{RetryPolicy, metric_label},
};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Mails that are sent at the same time: the next ones are claimed when all of them are settled.
const MAIL_BATCH: u16 = 8;
/// How long sending one mail may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(90);
/// Longer than [`SEND_TIMEOUT`], so that no two processes send the same mail at a time.
const LEASE_TTL: TimeDelta = TimeDelta::seconds(150);

/// A queue of mails.
#[async_trait]
pub(super) trait MailQueue: Send + Sync {
    type Claim: Send + Sync;

    /// The log line for a failed claim.
    const CLAIM_FAILED: &'static str;
    /// The log line for an outcome that was not recorded.
    const SETTLE_FAILED: &'static str;

    async fn claim(
        &self,
        now: DateTime<Utc>,
        lease: TimeDelta,
        limit: u16,
    ) -> Result<Vec<Self::Claim>, StoreError>;

    async fn send(&self, claim: &Self::Claim) -> Result<(), SendError>;

    fn log_failure(&self, claim: &Self::Claim, error: &SendError);

    /// Returns the number of the claim's attempt, from 1.
    fn attempt(&self, claim: &Self::Claim) -> i32;

    async fn settle(
        &self,
        claim: &Self::Claim,
        outcome: NotificationOutcome,
    ) -> Result<(), StoreError>;
}

/// Sends the mails of a queue, until it is dropped.
pub(super) async fn send_batches<Q: MailQueue>(queue: &Q, retries: &RetryPolicy) {
    loop {
        match queue.claim(retries.clock.now(), LEASE_TTL, MAIL_BATCH).await {
            Ok(claims) if claims.is_empty() => tokio::time::sleep(POLL_INTERVAL).await,
            Ok(claims) => {
                let mails = claims.iter().map(|claim| send(queue, retries, claim));
                for error in join_all(mails).await.into_iter().filter_map(Result::err) {
                    log_error(&error, Q::SETTLE_FAILED);
                }
            }
            Err(error) => {
                log_error(&error, Q::CLAIM_FAILED);
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

async fn send<Q: MailQueue>(
    queue: &Q,
    retries: &RetryPolicy,
    claim: &Q::Claim,
) -> Result<(), StoreError> {
    let sent = tokio::time::timeout(SEND_TIMEOUT, queue.send(claim)).await;
    let sent = sent.unwrap_or(Err(SendError::Transient("it took too long".into())));
    if let Err(error) = &sent {
        queue.log_failure(claim, error);
    }
    let outcome = retries.outcome(&sent, queue.attempt(claim));
    let label = metric_label(outcome);
    metrics::counter!("avouch_account_mail_attempts_total", "outcome" => label).increment(1);
    queue.settle(claim, outcome).await
}
