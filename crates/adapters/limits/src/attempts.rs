//! Delays of attempts to sign in, counted in memory, for one process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::attempts::{Attempts, Delays};
use ports::attempts::{AttemptLimiter, AttemptTarget};

use domain::rate::network;

/// Targets that are remembered before some are forgotten; some 10 MiB.
const MAX_TARGETS: usize = 65_536;

/// Attempts in memory, bounded: where too many targets come at once, those that protect least are
/// forgotten.
#[derive(Default)]
pub struct MemoryAttempts {
    all: Mutex<HashMap<AttemptTarget, (Attempts, Delays)>>,
}

/// An IPv6 address as its /64 network: whoever has one address of it has all.
pub(super) fn widened(target: AttemptTarget) -> AttemptTarget {
    match target {
        AttemptTarget::Network(address) => AttemptTarget::Network(network(address)),
        AttemptTarget::AccountFrom(account, address) => {
            AttemptTarget::AccountFrom(account, network(address))
        }
        AttemptTarget::Account(_) | AttemptTarget::Browser(_) | AttemptTarget::SignIn(_) => target,
    }
}

/// Forgets as little as is needed, what protects least first. An account whose attempts are delayed
/// stays so, and so does a browser or a sign-in: there are no more of those than were issued.
fn make_room(all: &mut HashMap<AttemptTarget, (Attempts, Delays)>, now: DateTime<Utc>) {
    for step in 0..4 {
        if all.len() < MAX_TARGETS {
            return;
        }
        all.retain(|target, (attempts, delays)| match (step, target) {
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
        let target = widened(target);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(&target).map(|(attempts, _)| *attempts);
        if before.is_none() && all.len() >= MAX_TARGETS {
            make_room(&mut all, now);
            if all.len() >= MAX_TARGETS {
                // Whom nobody can count is not let in.
                return Err(now + delays.after(u32::MAX));
            }
        }
        let attempts = delays.count(before, now)?;
        all.insert(target, (attempts, delays));
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
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((attempts, _)) = all.get_mut(&widened(target)) {
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
        assert!(limiter.all.lock().unwrap().len() <= MAX_TARGETS);
    }
}
