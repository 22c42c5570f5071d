//! API keys as text: a readable prefix, 256 random bits, and a checksum that tells a typing error
//! from an unknown key without a query.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::{
    api_key::{Environment, KeyHash},
    id::ApiKeyId,
    secret::Secret,
};

/// 62 digits; 43 of them hold 256 bits.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;

/// A key in plain form. It is shown once, when it is created.
pub struct ApiKeyText(Secret);

impl ApiKeyText {
    /// Makes a key of these random bits.
    #[must_use]
    pub fn new(environment: Environment, bits: [u8; 32]) -> Self {
        let body = base62(&mut { bits }, BODY_DIGITS);
        let stem = format!("{}{body}", environment.key_prefix());
        let checksum = checksum(&stem);
        Self(Secret::new(format!("{stem}{checksum}")))
    }

    /// Reads a key that a caller sent; `None` if no key has this form.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let environments = [Environment::Development, Environment::Production];
        let prefix = environments.iter().map(|e| e.key_prefix()).find(|p| text.starts_with(p))?;
        let is_whole =
            text.len() == prefix.len() + BODY_DIGITS + CHECKSUM_DIGITS && text.is_ascii();
        let (stem, sum) = text.split_at_checked(text.len().checked_sub(CHECKSUM_DIGITS)?)?;
        (is_whole && checksum(stem) == sum).then(|| Self(Secret::new(text.to_owned())))
    }

    /// Returns the hash, which is all that is stored of the key.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(crate::digest::sha256(self.0.expose().as_bytes()))
    }

    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// When keys were last used, to the minute, until a worker records it.
#[derive(Default)]
pub struct KeyUses(Mutex<HashMap<ApiKeyId, DateTime<Utc>>>);

impl KeyUses {
    pub fn note(&self, key: ApiKeyId, now: DateTime<Utc>) {
        let now = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
    }

    /// Takes the uses that were noted since the last call.
    pub fn take(&self) -> Vec<(ApiKeyId, DateTime<Utc>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).drain().collect()
    }
}

/// Returns big-endian bytes as so many base-62 digits. The bytes are zero afterwards, unless they need
/// more digits.
fn base62(bytes: &mut [u8], length: usize) -> String {
    let mut digits = Vec::with_capacity(length);
    for _ in 0..length {
        let mut rest = 0_u16;
        for byte in bytes.iter_mut() {
            let value = rest * 256 + u16::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        digits.push(DIGITS.get(usize::from(rest)).copied().unwrap_or(b'0'));
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

fn checksum(stem: &str) -> String {
    let mut hash = crate::digest::sha256(stem.as_bytes());
    base62(hash.split_at_mut(4).0, CHECKSUM_DIGITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_and_a_typing_error_is_not() {
        let key = ApiKeyText::new(Environment::Development, [0xA5; 32]);
        assert!(key.expose().starts_with("avk_dev_") && key.expose().len() == 57);
        assert!(ApiKeyText::read(key.expose()).is_some());
        let mut wrong = key.expose().to_owned();
        wrong.replace_range(20..21, if wrong.get(20..21) == Some("a") { "b" } else { "a" });
        assert!(ApiKeyText::read(&wrong).is_none());
        for text in ["", "avk_dev_", "avk_live_ü", "x"] {
            assert!(ApiKeyText::read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn all_bits_count() {
        let keys = [[0; 32], [255; 32]].map(|bits| ApiKeyText::new(Environment::Production, bits));
        assert!(keys.iter().all(|key| key.expose().len() == 58));
    }
}
