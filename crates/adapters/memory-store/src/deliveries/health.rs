//! The health of webhook endpoints: consecutive failures, since when, and pauses.

use chrono::{DateTime, TimeDelta, Utc};
use domain::webhook::{EndpointHealth, count_failure, open_duration};
use ports::delivery::HealthUpdate;

use super::Deliveries;

impl Deliveries {
    /// Updates the health of webhooks from the answers counted in `tallies`; an unknown webhook is
    /// skipped.
    pub(super) fn note_tallies(&mut self, tallies: &[HealthUpdate], now: DateTime<Utc>) {
        for tally in tallies {
            if let Some(kept) = self.webhooks.get_mut(&tally.webhook) {
                kept.health = after(kept.health, tally, now);
            }
        }
    }
}

/// Returns the health after the answers of one tally. Failures that are reported during a pause are
/// of calls made before it and do not count; a success ends the pause.
fn after(before: EndpointHealth, tally: &HealthUpdate, now: DateTime<Utc>) -> EndpointHealth {
    let health = if tally.success { EndpointHealth::default() } else { before };
    if tally.failures == 0 || !health.permits_delivery(now) {
        return health;
    }
    let failures = count_failure(health.failures, tally.failures);
    let pause = open_duration(failures).and_then(|pause| TimeDelta::from_std(pause).ok());
    EndpointHealth {
        failures,
        failing_since: health.failing_since.or(Some(now)),
        paused_until: pause.map(|pause| now + pause),
    }
}
