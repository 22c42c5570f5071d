//! Rate limits, counted in memory for one process.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Mutex, PoisonError},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::rate::{RateWindow, network};
use ports::rate_limiter::{Charge, RateLimiter, Subject};

/// Shards reduce contention between worker threads.
const SHARDS: usize = 32;
/// The maximum number of subjects in a shard; some 5 MiB in all.
const MAX_SUBJECTS_PER_SHARD: usize = 2048;

/// Windows in memory. If there are too many subjects, those whose loss weakens protection least are
/// evicted.
pub struct MemoryLimiter {
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<Subject, RateWindow>>>,
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { hasher: RandomState::new(), shards }
    }
}

impl MemoryLimiter {
    fn count(&self, charge: &Charge, now: DateTime<Utc>) -> RateWindow {
        let subject = by_network(charge.subject);
        let new_window =
            RateWindow { limit: charge.limit, used: 0, resets_at: now + charge.limit.span() };
        let shard = usize::try_from(self.hasher.hash_one(subject) >> 32).unwrap_or(0) % SHARDS;
        let Some(shard) = self.shards.get(shard) else { return new_window };
        let mut windows = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MAX_SUBJECTS_PER_SHARD && !windows.contains_key(&subject) {
            evict(&mut windows, now);
            if windows.len() >= MAX_SUBJECTS_PER_SHARD {
                // A request that cannot be counted is refused.
                return RateWindow { used: charge.limit.count.saturating_add(1), ..new_window };
            }
        }
        let window = windows.entry(subject).or_insert(new_window);
        if window.resets_at <= now {
            *window = new_window;
        }
        window.used = window.used.saturating_add(1);
        window.limit = charge.limit;
        *window
    }
}

/// Evicts as little as needed, in the order of the least loss of protection: addresses, then
/// requests for links from an address, then mailboxes that are within their limits. Keys are
/// counted until their window is over, since their number is bounded by the number issued.
fn evict(windows: &mut HashMap<Subject, RateWindow>, now: DateTime<Utc>) {
    let is_exhausted = |window: &RateWindow| window.used >= window.limit.count;
    for step in 0..4 {
        if windows.len() < MAX_SUBJECTS_PER_SHARD {
            return;
        }
        windows.retain(|subject, window| match (step, subject) {
            (0, _) => window.resets_at > now,
            (1, Subject::Address(_)) | (2, Subject::SignIns(_)) => false,
            (3, Subject::Mails(_) | Subject::Recipient(..)) => is_exhausted(window),
            _ => true,
        });
    }
}

/// Replaces an IPv6 address by its /64 network, since a client usually has a complete /64.
pub(super) fn by_network(subject: Subject) -> Subject {
    match subject {
        Subject::Address(address) => Subject::Address(network(address)),
        Subject::SignIns(address) => Subject::SignIns(network(address)),
        Subject::Key(_)
        | Subject::Creation(_)
        | Subject::TeamCreation(_)
        | Subject::Recipient(..)
        | Subject::Mails(_) => subject,
    }
}

#[async_trait]
impl RateLimiter for MemoryLimiter {
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow> {
        charges.iter().map(|charge| self.count(charge, now)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use domain::{id::ApiKeyId, rate::RateLimit};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_flood_of_addresses_makes_nobody_forget_a_key() {
        let limiter = MemoryLimiter::default();
        let limit = RateLimit { count: 2, seconds: 60 };
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let key = Charge { subject: Subject::Key(ApiKeyId::from_uuid(Uuid::nil())), limit };
        assert_eq!(limiter.count(&key, now).used, 1);
        for number in 0..200_000_u32 {
            let address = IpAddr::V4(number.into());
            limiter.count(&Charge { subject: Subject::Address(address), limit }, now);
        }
        let kept: usize = limiter.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(kept <= SHARDS * MAX_SUBJECTS_PER_SHARD, "{kept}");
        assert_eq!(limiter.count(&key, now).used, 2);
    }

    #[test]
    fn a_flood_sends_nobody_more_mails() {
        let limiter = MemoryLimiter::default();
        let limit = RateLimit { count: 2, seconds: 60 };
        let now = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let mails = Charge { subject: Subject::Mails([9; 16]), limit };
        let windows = [(); 3].map(|()| limiter.count(&mails, now));
        assert!(!windows[2].admits());
        for number in 0..100_000_u32 {
            let [a, b, c, d] = number.to_be_bytes();
            let mut hash = [0; 16];
            hash[..4].copy_from_slice(&[a, b, c, d]);
            let address = IpAddr::V4(number.into());
            for subject in
                [Subject::Address(address), Subject::SignIns(address), Subject::Mails(hash)]
            {
                limiter.count(&Charge { subject, limit }, now);
            }
        }
        assert!(!limiter.count(&mails, now).admits());
        let kept: usize = limiter.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert!(kept <= SHARDS * MAX_SUBJECTS_PER_SHARD, "{kept}");
    }

    #[test]
    fn addresses_of_one_network_are_one_subject() {
        let subject = |text: &str| by_network(Subject::Address(text.parse().unwrap()));
        assert_eq!(subject("2001:db8::1"), subject("2001:db8::ffff:2"));
        assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
        assert_eq!(subject("::ffff:192.0.2.1"), subject("192.0.2.1"));
        assert_ne!(subject("192.0.2.1"), subject("192.0.2.2"));
    }
}
