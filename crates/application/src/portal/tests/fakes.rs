//! Stand-ins for the driven ports that the in-memory store does not implement.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::{
    account::Email,
    attempts::{Attempts, Delays},
    audit::{AuditEntry, AuditEvent},
    id::{TeamId, UserId},
    rate::RateWindow,
};
use ports::{
    StoreError,
    attempts::{AttemptLimiter, AttemptTarget},
    audit_log::AuditLog,
    encryption::{Cipher, CipherError},
    passkeys::{Ceremony, Credential, PasskeyVerifier},
    random::RandomSource,
    rate_limiter::{Charge, RateLimiter, Subject},
    refusals::{RefusalClass, RefusalLog},
};

pub(super) use crate::fakes::{PlainHasher, PlainRenderer, PlainTotp, plain_hash};

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts upwards.
#[derive(Default)]
pub(super) struct CountingRandom(AtomicU64);

impl CountingRandom {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl RandomSource for CountingRandom {
    fn new_id(&self) -> u128 {
        self.next().into()
    }

    fn random_u16(&self) -> u16 {
        0
    }

    fn random_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.next().to_be_bytes());
        bytes
    }
}

/// Writes the context before the plaintext.
pub(super) struct ContextCipher;

impl Cipher for ContextCipher {
    fn encrypt(&self, context: &str, plaintext: &[u8]) -> Result<Vec<u8>, CipherError> {
        Ok([context.as_bytes(), b"\0", plaintext].concat())
    }

    fn decrypt(&self, context: &str, ciphertext: &[u8]) -> Result<Vec<u8>, CipherError> {
        let plaintext = ciphertext.strip_prefix(context.as_bytes());
        let plaintext = plaintext.and_then(|rest| rest.strip_prefix(b"\0"));
        plaintext.map(<[u8]>::to_vec).ok_or(CipherError::Damaged)
    }

    fn is_current(&self, _: &str, _: &[u8]) -> bool {
        true
    }
}

/// Has no keys.
pub(super) struct BrokenCipher;

impl Cipher for BrokenCipher {
    fn encrypt(&self, _: &str, _: &[u8]) -> Result<Vec<u8>, CipherError> {
        Err(CipherError::NoKey(1))
    }

    fn decrypt(&self, _: &str, _: &[u8]) -> Result<Vec<u8>, CipherError> {
        Err(CipherError::NoKey(1))
    }

    fn is_current(&self, _: &str, _: &[u8]) -> bool {
        false
    }
}

/// An answer is the identifier of a credential.
pub(super) struct PlainPasskeys;

impl PasskeyVerifier for PlainPasskeys {
    fn offer(&self, (_, email): (UserId, &Email), have: &[Credential]) -> Option<Ceremony> {
        let options = format!("create for {email} beside {}", have.len());
        Some(Ceremony { options, state: b"create".to_vec() })
    }

    fn register(&self, state: &[u8], answer: &str) -> Option<Credential> {
        (state == b"create" && answer.starts_with("key-")).then(|| Credential {
            id: answer.as_bytes().to_vec(),
            key: vec![],
            state: vec![0],
            transports: 0,
        })
    }

    fn ask(&self, have: &[Credential]) -> Option<Ceremony> {
        let ceremony = Ceremony { options: "get".to_owned(), state: b"get".to_vec() };
        (!have.is_empty()).then_some(ceremony)
    }

    fn verify(
        &self,
        _: UserId,
        have: &[Credential],
        state: &[u8],
        answer: &str,
    ) -> Option<Credential> {
        let found = have.iter().find(|credential| credential.id == answer.as_bytes());
        let found = found.filter(|_| state == b"get")?;
        let state = found.state.iter().map(|counter| counter + 1).collect();
        Some(Credential { state, ..found.clone() })
    }
}

/// Counts in one window that does not end.
#[derive(Default)]
pub(super) struct OneWindow(Mutex<HashMap<Subject, u32>>);

#[async_trait]
impl RateLimiter for OneWindow {
    async fn charge(&self, charges: &[Charge], now: DateTime<Utc>) -> Vec<RateWindow> {
        let mut counts = lock(&self.0);
        let windows = charges.iter().map(|Charge { subject, limit }| {
            let used = counts.entry(*subject).or_default();
            *used += 1;
            RateWindow { limit: *limit, used: *used, resets_at: now + limit.span() }
        });
        windows.collect()
    }
}

/// Counts by the rules of the domain.
#[derive(Default)]
pub(super) struct CountingAttempts(Mutex<HashMap<AttemptTarget, Attempts>>);

impl CountingAttempts {
    /// Returns the attempts that are counted against all targets.
    pub(super) fn counted(&self) -> u32 {
        lock(&self.0).values().map(|attempts| attempts.count).sum()
    }
}

#[async_trait]
impl AttemptLimiter for CountingAttempts {
    async fn attempt(
        &self,
        target: AttemptTarget,
        delays: Delays,
        now: DateTime<Utc>,
    ) -> Result<(), DateTime<Utc>> {
        let mut all = lock(&self.0);
        let counted = delays.count(all.get(&target).copied(), now)?;
        all.insert(target, counted);
        Ok(())
    }

    async fn undo_attempt(&self, target: AttemptTarget, now: DateTime<Utc>) {
        if let Some(attempts) = lock(&self.0).get_mut(&target) {
            *attempts = attempts.forgiven(now);
        }
    }
}

/// Allows every line.
pub(super) struct EveryLine;

impl RefusalLog for EveryLine {
    fn may_log(&self, _: RefusalClass) -> bool {
        true
    }
}

/// Fails to record anything.
pub(super) struct BrokenAuditLog;

#[async_trait]
impl AuditLog for BrokenAuditLog {
    async fn note(&self, _: TeamId, _: &AuditEvent) -> Result<(), StoreError> {
        Err(StoreError::new("record an audit event", "the disk is full"))
    }

    async fn entries(
        &self,
        _: TeamId,
        _: Option<i64>,
        _: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        Err(StoreError::new("read the audit log", "the disk is full"))
    }
}
