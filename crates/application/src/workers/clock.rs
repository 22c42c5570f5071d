//! Sets the clock of the process by that of the database.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use ports::{
    StoreError,
    clock::{AdjustableClock, Clock, ReferenceClock},
};
use tokio::time::Instant;

use super::Worker;

const ADJUSTMENT_INTERVAL: Duration = Duration::from_secs(1);
/// What took longer says little: the reference was read at any moment of it.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(500);
/// A smaller difference is not worth an adjustment.
const MIN_DIFFERENCE: TimeDelta = TimeDelta::milliseconds(5);
/// A larger one is logged.
const NOTED_DIFFERENCE: TimeDelta = TimeDelta::seconds(2);
/// How far the reference may be from the clock of the machine, and how far it may be set at once. Farther, it
/// is taken for wrong: what is kept for days must not be deleted by a wrong clock.
const MAX_DISAGREEMENT: TimeDelta = TimeDelta::hours(12);

/// Reads the reference once a second.
pub struct ClockAdjuster {
    pub clock: Arc<dyn AdjustableClock>,
    pub reference: Arc<dyn ReferenceClock>,
    /// The clock of the machine.
    pub machine: Arc<dyn Clock>,
}

/// Why the reference is not followed.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the clock of the database shows {reference} and that of this machine {machine}; correct the \
         wrong one"
    )]
    Disagreement { reference: DateTime<Utc>, machine: DateTime<Utc> },
    #[error(
        "the clock of the database was set from {shown} to {reference}; if that is right, start this \
         process again"
    )]
    Step { shown: DateTime<Utc>, reference: DateTime<Utc> },
}

/// Reads the time by which a process begins.
pub async fn read_reference(
    reference: &dyn ReferenceClock,
    machine: &dyn Clock,
) -> Result<DateTime<Utc>, ClockError> {
    let read = reference.read_clock().await?;
    let here = machine.now();
    if (read - here).abs() > MAX_DISAGREEMENT {
        return Err(ClockError::Disagreement { reference: read, machine: here });
    }
    Ok(read)
}

#[async_trait]
impl Worker for ClockAdjuster {
    fn name(&self) -> &'static str {
        "clock"
    }

    async fn run(&self) {
        let mut is_refused = false;
        loop {
            match self.adjust().await {
                Ok(()) => is_refused = false,
                // Other workers report a store that does not answer.
                Err(ClockError::Store(_)) => {}
                Err(error @ (ClockError::Disagreement { .. } | ClockError::Step { .. })) => {
                    if !std::mem::replace(&mut is_refused, true) {
                        let error: &dyn std::error::Error = &error;
                        tracing::error!(error, "the clock of the database is not followed");
                    }
                }
            }
            tokio::time::sleep(ADJUSTMENT_INTERVAL).await;
        }
    }
}

impl ClockAdjuster {
    async fn adjust(&self) -> Result<(), ClockError> {
        let began = Instant::now();
        let read = read_reference(&*self.reference, &*self.machine).await?;
        let took = began.elapsed();
        let uncertainty = TimeDelta::from_std(took).unwrap_or(TimeDelta::MAX);
        let shown = self.clock.now();
        let ahead = read + uncertainty / 2 - shown;
        metrics::gauge!("avouch_clock_difference_seconds").set(ahead.as_seconds_f64());
        // Where both are the clock of one machine they never disagree.
        if ahead.abs() > MAX_DISAGREEMENT {
            return Err(ClockError::Step { shown, reference: read });
        }
        let is_certain = took <= MAX_ROUND_TRIP || ahead.abs() > uncertainty;
        if is_certain && ahead.abs() > uncertainty.max(MIN_DIFFERENCE) {
            self.clock.advance(ahead);
            if ahead.abs() > NOTED_DIFFERENCE {
                let seconds = ahead.as_seconds_f64();
                tracing::warn!(
                    seconds,
                    "the clock of the database was set, or this machine was suspended"
                );
            }
        }
        Ok(())
    }
}
