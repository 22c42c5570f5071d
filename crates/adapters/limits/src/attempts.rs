//! Delays of sign-in attempts, counted in memory for one process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::attempts::{Attempts, Delays};
use ports::attempts::{AttemptLimiter, AttemptTarget};

use domain::rate::network;

/// The maximum number of targets in memory; some 10 MiB.
const MAX_TARGETS: usize = 65_536;

/// Attempts in memory. If there are too many targets, those whose loss weakens protection least are
/// evicted.
#[derive(Default)]
pub struct MemoryAttempts {
    targets: Mutex<HashMap<AttemptTarget, (Attempts, Delays)>>,
}

/// Replaces an IPv6 address by its /64 network, since a client usually has a complete /64.
pub(super) fn by_network(target: AttemptTarget) -> AttemptTarget {
    match target {
        AttemptTarget::Network(address) => AttemptTarget::Network(network(address)),
        AttemptTarget::AccountFrom(account, address) => {
            AttemptTarget::AccountFrom(account, network(address))
        }
        AttemptTarget::Account(_) | AttemptTarget::Browser(_) | AttemptTarget::SignIn(_) => target,
    }
}

/// Evicts as little as needed, in the order of the least loss of protection. Accounts whose
/// attempts are delayed are not evicted, nor are browsers and sign-ins, whose number is bounded by
/// the number issued.
fn evict(targets: &mut HashMap<AttemptTarget, (Attempts, Delays)>, now: DateTime<Utc>) {
    for step in 0..4 {
        if targets.len() < MAX_TARGETS {
            return;
        }
        targets.retain(|target, (attempts, delays)| match (step, target) {
            (0, _) => now < attempts.forgotten_at,
            (
                1,
                AttemptTarget::AccountFrom(..)
                | AttemptTarget::Network(_)
                | AttemptTarget::Account(_),
            ) => attempts.is_delayed(*delays),
            (2, AttemptTarget::AccountFrom(..)) | (3, AttemptTarget::Network(_)) => false,
            _ => true,
        });
    }
}

impl MemoryAttempts {
    fn count(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>> {
        let target = by_network(target);
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let previous = targets.get(&target).map(|(attempts, _)| *attempts);
        if previous.is_none() && targets.len() >= MAX_TARGETS {
            evict(&mut targets, now);
            if targets.len() >= MAX_TARGETS {
                // An attempt that cannot be counted is refused.
                return Err(now + delays.after(u32::MAX));
            }
        }
        let attempts = delays.count(previous, now)?;
        targets.insert(target, (attempts, delays));
        Ok(())
    }
}

#[async_trait]
impl AttemptLimiter for MemoryAttempts {
    async fn attempt(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>> {
        self.count(target, delays, now)
    }

    async fn undo_attempt(&self, target: AttemptTarget, now: DateTime<Utc>) {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((attempts, _)) = targets.get_mut(&by_network(target)) {
            *attempts = attempts.forgiven(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use domain::attempts::{
        DELAYS_PER_ACCOUNT, DELAYS_PER_ACCOUNT_AND_NETWORK, DELAYS_PER_NETWORK,
    };

    use super::*;

    #[test]
    fn a_flood_ends_no_accounts_delay() {
        let limiter = MemoryAttempts::default();
        let mut now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let account = AttemptTarget::Account([9; 16]);
        let mut refused = false;
        for _ in 0..30 {
            match limiter.count(account, DELAYS_PER_ACCOUNT, now) {
                Ok(()) => (),
                Err(next) => (refused, now) = (true, next),
            }
        }
        assert!(refused && limiter.count(account, DELAYS_PER_ACCOUNT, now).is_ok());
        for number in 0..100_000_u32 {
            let address = IpAddr::V4(number.into());
            let mut hash = [0; 16];
            hash[..4].copy_from_slice(&number.to_be_bytes());
            for (target, delays) in [
                (AttemptTarget::Network(address), DELAYS_PER_NETWORK),
                (AttemptTarget::AccountFrom(hash, address), DELAYS_PER_ACCOUNT_AND_NETWORK),
                (AttemptTarget::Account(hash), DELAYS_PER_ACCOUNT),
            ] {
                assert!(limiter.count(target, delays, now).is_ok(), "{number}");
            }
        }
        assert!(limiter.count(account, DELAYS_PER_ACCOUNT, now).is_err());
        assert!(limiter.targets.lock().unwrap().len() <= MAX_TARGETS);
    }
}
