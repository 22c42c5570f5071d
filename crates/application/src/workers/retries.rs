//! What follows a failed attempt to send a notification or a mail.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::{
    notification::{MAX_NOTIFICATION_ATTEMPTS, NotificationFailure},
    webhook::Backoff,
};
use ports::{
    clock::Clock,
    notifier::{NotificationOutcome, SendError},
    random::RandomSource,
};

/// Decides when a message is sent again, and when it is given up.
#[derive(Clone)]
pub struct RetryPolicy {
    pub backoff: Backoff,
    pub random: Arc<dyn RandomSource>,
    pub clock: Arc<dyn Clock>,
}

impl RetryPolicy {
    /// Returns the outcome of an attempt; the first attempt has number 1.
    pub(super) fn outcome(
        &self,
        sent: &Result<(), SendError>,
        attempt: i32,
    ) -> NotificationOutcome {
        match sent {
            Ok(()) => NotificationOutcome::Sent { at: self.clock.now() },
            Err(SendError::Permanent { why, .. }) => self.failed(*why),
            Err(SendError::Transient(_)) => self.retry(attempt),
        }
    }

    pub(super) fn failed(&self, why: NotificationFailure) -> NotificationOutcome {
        NotificationOutcome::Failed { at: self.clock.now(), why }
    }

    fn retry(&self, attempt: i32) -> NotificationOutcome {
        if attempt >= MAX_NOTIFICATION_ATTEMPTS {
            return self.failed(NotificationFailure::Unreachable);
        }
        let wait = self.backoff.after(attempt.unsigned_abs(), self.random.random_u16());
        let wait = TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(6));
        NotificationOutcome::RetryAt(self.clock.now() + wait)
    }
}

/// Returns the word for an outcome in metrics.
pub(super) const fn metric_label(outcome: NotificationOutcome) -> &'static str {
    match outcome {
        NotificationOutcome::Sent { .. } => "sent",
        NotificationOutcome::RetryAt(_) => "put_off",
        NotificationOutcome::Failed { .. } => "failed",
    }
}
