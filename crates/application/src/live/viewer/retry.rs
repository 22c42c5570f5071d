//! How long a session with a failed attempt stays open: while the applicant uses the page.

use std::{sync::PoisonError, time::Duration};

use chrono::{DateTime, Utc};
use domain::session::Lease;
use tokio::time::Instant;

use super::ActiveViewer;
use crate::advance::LEASE_RENEW_INTERVAL;

/// How long after the applicant's last action at the page another attempt is offered.
const MAX_IDLE: Duration = Duration::from_secs(60);

/// The offer of another attempt on this connection.
pub(super) struct RetryOffer {
    /// When the applicant last acted; at first, when the offer was made.
    acted_at: Instant,
    renewed_at: Option<Instant>,
}

/// What happens to the offer of another attempt.
pub(super) enum RetryStep {
    Renew(Lease),
    Expire,
}

impl ActiveViewer {
    /// The applicant moves the pointer, types, scrolls or touches the page.
    pub(super) fn applicant_acted(&self) {
        let mut offer = self.retry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(offer) = &mut *offer {
            offer.acted_at = Instant::now();
        }
    }

    /// Returns the lease of a session that offers another attempt, and when the offer ends.
    fn offered(&self) -> Option<(Lease, DateTime<Utc>)> {
        let state = self.live.state.borrow();
        let session = state.session.as_ref()?;
        let (_, until) = session.state.offered_retry()?;
        Some((session.state.lease()?, until))
    }

    /// Decides about the offer of another attempt, if there is one: its lease is renewed while the
    /// applicant acts, and the offer ends a minute after their last action.
    pub(super) fn retry_step(&self) -> Option<RetryStep> {
        let mut offer = self.retry.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((lease, until)) = self.offered() else {
            *offer = None;
            return None;
        };
        let now = Instant::now();
        let offer = offer.get_or_insert(RetryOffer { acted_at: now, renewed_at: None });
        let is_idle = now.duration_since(offer.acted_at) >= MAX_IDLE;
        if is_idle || self.services.engine.clock.now() >= until {
            return Some(RetryStep::Expire);
        }
        let is_recent =
            offer.renewed_at.is_some_and(|at| now.duration_since(at) < LEASE_RENEW_INTERVAL);
        if is_recent {
            return None;
        }
        offer.renewed_at = Some(now);
        Some(RetryStep::Renew(lease))
    }
}
