//! API keys that were read a moment ago.
//!
//! Partners look things up many times a second with the same key. A process trusts a key, and the
//! catalogue's revision, for [`TRUST`] after it began to read them. Whoever changes one of them answers
//! only [`once_nobody_trusts_the_earlier_value`]: a key that was rotated or revoked is refused by every
//! process from that answer on.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    api_key::{ApiKey, KeyHash},
    id::ApiKeyId,
};
use ports::{StoreError, catalogue::CatalogueRevision, key_store::KeyVerification};
use tokio::time::Instant;

/// The time for which a key is trusted, from the beginning of the read.
pub const TRUST: Duration = Duration::from_millis(100);

/// What a change waits in addition, since two machines measure the same duration a little differently.
const MARGIN: Duration = Duration::from_millis(5);

/// The most keys that are trusted at once; further ones are read for each request.
const MAX_KEYS: usize = 1024;

/// Waits, after a key or the catalogue has been changed, until no process trusts an earlier value.
pub async fn once_nobody_trusts_the_earlier_value() {
    tokio::time::sleep(TRUST + MARGIN).await;
}

/// A [`KeyVerification`] that reads a key again only after [`TRUST`]. Unknown keys are looked up each
/// time: they would let callers choose what is remembered.
pub struct TrustedKeys {
    keys: Arc<dyn KeyVerification>,
    trusted: Mutex<HashMap<KeyHash, Trusted>>,
}

struct Trusted {
    key: ApiKey,
    revision: CatalogueRevision,
    until: Instant,
}

impl TrustedKeys {
    #[must_use]
    pub fn new(keys: Arc<dyn KeyVerification>) -> Self {
        Self { keys, trusted: Mutex::default() }
    }

    fn trusted(&self) -> MutexGuard<'_, HashMap<KeyHash, Trusted>> {
        self.trusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, hash: &KeyHash, now: Instant) -> Option<(ApiKey, CatalogueRevision)> {
        let trusted = self.trusted();
        let found = trusted.get(hash).filter(|found| now < found.until)?;
        Some((found.key.clone(), found.revision))
    }

    fn trust(&self, hash: &KeyHash, found: Trusted, now: Instant) {
        let mut trusted = self.trusted();
        if trusted.len() >= MAX_KEYS {
            trusted.retain(|_, other| now < other.until);
        }
        // A read that began later may have ended earlier.
        let is_latest = trusted.get(hash).is_none_or(|other| other.until < found.until);
        if is_latest && (trusted.len() < MAX_KEYS || trusted.contains_key(hash)) {
            trusted.insert(hash.clone(), found);
        }
    }
}

#[async_trait]
impl KeyVerification for TrustedKeys {
    async fn key_by_hash(
        &self,
        hash: &KeyHash,
    ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError> {
        let began = Instant::now();
        if let Some(found) = self.find(hash, began) {
            return Ok(Some(found));
        }
        let Some((key, revision)) = self.keys.key_by_hash(hash).await? else {
            return Ok(None);
        };
        let found = Trusted { key: key.clone(), revision, until: began + TRUST };
        self.trust(hash, found, Instant::now());
        Ok(Some((key, revision)))
    }

    async fn record_key_uses(&self, uses: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError> {
        self.keys.record_key_uses(uses).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::{api_key::Environment, id::TeamId};

    use super::*;

    /// A store of one key, which counts its reads and takes its time for each.
    struct Keys {
        key: Mutex<ApiKey>,
        takes: Duration,
        reads: AtomicUsize,
    }

    #[async_trait]
    impl KeyVerification for Keys {
        async fn key_by_hash(
            &self,
            hash: &KeyHash,
        ) -> Result<Option<(ApiKey, CatalogueRevision)>, StoreError> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let key = self.key.lock().unwrap().clone();
            tokio::time::sleep(self.takes).await;
            Ok((hash.0[31] == 0).then_some((key, CatalogueRevision(1))))
        }

        async fn record_key_uses(&self, _: &[(ApiKeyId, DateTime<Utc>)]) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn keys(takes: Duration) -> (Arc<Keys>, TrustedKeys) {
        let key = ApiKey {
            id: ApiKeyId::from_u128(1),
            team: TeamId::from_u128(2),
            environment: Environment::Production,
            expires_at: None,
            revoked_at: None,
        };
        let keys = Arc::new(Keys { key: Mutex::new(key), takes, reads: AtomicUsize::new(0) });
        (keys.clone(), TrustedKeys::new(keys))
    }

    const HASH: KeyHash = KeyHash([0; 32]);

    async fn is_revoked(trusted: &TrustedKeys) -> bool {
        trusted.key_by_hash(&HASH).await.unwrap().unwrap().0.revoked_at.is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_read_once_in_100_ms() {
        let (keys, trusted) = keys(Duration::ZERO);
        for _ in 0..10 {
            trusted.key_by_hash(&HASH).await.unwrap().unwrap();
            tokio::time::advance(Duration::from_millis(25)).await;
        }
        // At 0, 100 and 200 ms.
        assert_eq!(keys.reads.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_trusted_from_the_beginning_of_its_read() {
        let (keys, trusted) = keys(Duration::from_millis(80));
        let began = Instant::now();
        assert!(!is_revoked(&trusted).await);
        keys.key.lock().unwrap().revoked_at = Some(DateTime::UNIX_EPOCH);
        tokio::time::sleep_until(began + Duration::from_millis(99)).await;
        assert!(!is_revoked(&trusted).await, "80 of the 100 ms were those of the read");
        tokio::time::sleep_until(began + TRUST).await;
        assert!(is_revoked(&trusted).await);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_wait_nobody_trusts_a_key_that_was_read_before() {
        let (keys, trusted) = keys(Duration::from_millis(30));
        let read = is_revoked(&trusted);
        let revoked = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            keys.key.lock().unwrap().revoked_at = Some(DateTime::UNIX_EPOCH);
            once_nobody_trusts_the_earlier_value().await;
        };
        let (was_revoked, ()) = tokio::join!(read, revoked);
        assert!(!was_revoked, "the read began before");
        assert!(is_revoked(&trusted).await);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_keys_are_read_each_time_and_others_remembered_up_to_a_bound() {
        let (keys, trusted) = keys(Duration::ZERO);
        let hash = |number: usize, last: u8| {
            let mut bytes = [last; 32];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            KeyHash(bytes)
        };
        for _ in 0..2 {
            assert!(trusted.key_by_hash(&hash(7, 1)).await.unwrap().is_none());
        }
        assert_eq!(keys.reads.load(Ordering::Relaxed), 2);
        for number in 0..2 * MAX_KEYS {
            trusted.key_by_hash(&hash(number, 0)).await.unwrap().unwrap();
        }
        assert_eq!(trusted.trusted().len(), MAX_KEYS);
        tokio::time::advance(TRUST).await;
        trusted.key_by_hash(&hash(2 * MAX_KEYS, 0)).await.unwrap().unwrap();
        assert_eq!(trusted.trusted().len(), 1, "those that are trusted no longer made room");
    }
}
