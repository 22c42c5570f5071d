//! The claims that this process holds. Each is a short lease, which is renewed until the result of its
//! call is stored: if the process dies, its deliveries are free again after [`CLAIM_TTL`], however long
//! their endpoints may take.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::id::DeliveryId;
use ports::{
    clock::Clock,
    delivery::{CLAIM_TTL, ClaimRef, Delivery, DeliveryQueue},
};
use tokio::time::Instant;

use crate::workers::log_error;

/// The age at which a claim is renewed. Most calls end before, so that they cost no renewal.
const RENEW_AFTER: Duration = Duration::from_secs(2);
const RENEW_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum number of claims in one statement.
const MAX_BATCH: usize = 512;

/// The claims that this process holds.
#[derive(Default)]
pub(super) struct HeldClaims(Mutex<HashMap<DeliveryId, Claim>>);

#[derive(Clone, Copy)]
struct Claim {
    number: i32,
    renewed_at: Instant,
}

/// A claim, renewed until this is dropped.
pub(super) struct HeldClaim {
    all: Arc<HeldClaims>,
    delivery: DeliveryId,
    claimed_as: i32,
}

impl HeldClaims {
    /// Holds the claim of a delivery; `None` if this process has the delivery already. That happens
    /// if its lease has expired during a call because the database was not available; the call then
    /// has the new claim.
    pub(super) fn hold(self: &Arc<Self>, delivery: &Delivery) -> Option<HeldClaim> {
        let claim = Claim { number: delivery.claim, renewed_at: Instant::now() };
        let previous = self.lock().insert(delivery.id, claim);
        let claimed_as = delivery.claim;
        previous.is_none().then(|| HeldClaim {
            all: self.clone(),
            delivery: delivery.id,
            claimed_as,
        })
    }

    /// Renews claims until it is dropped.
    pub(super) async fn renew(&self, queue: &dyn DeliveryQueue, clock: &dyn Clock) {
        loop {
            tokio::time::sleep(RENEW_INTERVAL).await;
            let due = self.due();
            for batch in due.chunks(MAX_BATCH) {
                let began = Instant::now();
                if let Err(error) = queue.renew_claims(batch, clock.now() + CLAIM_TTL).await {
                    log_error(&error, "failed to renew the leases of deliveries, retrying");
                    break;
                }
                self.renewed(batch, began);
            }
        }
    }

    fn due(&self) -> Vec<ClaimRef> {
        let claims = self.lock();
        let due = claims.iter().filter(|(_, claim)| claim.renewed_at.elapsed() >= RENEW_AFTER);
        due.map(|(delivery, claim)| ClaimRef { delivery: *delivery, claim: claim.number }).collect()
    }

    fn renewed(&self, batch: &[ClaimRef], at: Instant) {
        let mut claims = self.lock();
        for one in batch {
            if let Some(claim) = claims.get_mut(&one.delivery).filter(|c| c.number == one.claim) {
                claim.renewed_at = at;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeliveryId, Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldClaim {
    /// The number of the claim, by which a result is stored.
    pub(super) fn number(&self) -> i32 {
        self.all.lock().get(&self.delivery).map_or(self.claimed_as, |claim| claim.number)
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        self.all.lock().remove(&self.delivery);
    }
}
