//! Time and chance, from the machine; and the tokens made of them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SubsecRound as _, Utc};
use domain::{id::SessionId, secret::Secret};
use ports::clock::{Chance, Clock, Tokens};
use ring::hmac;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

/// The machine's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now().trunc_subsecs(6)
    }
}

/// The operating system's source of randomness.
pub struct SystemChance;

impl Chance for SystemChance {
    #[expect(clippy::disallowed_methods, reason = "the one place that makes identifiers")]
    fn id(&self) -> u128 {
        Uuid::now_v7().as_u128()
    }

    fn number(&self) -> u16 {
        let [high, low, ..] = self.bits();
        u16::from_be_bytes([high, low])
    }

    fn bits(&self) -> [u8; 32] {
        let [a, b] = [Uuid::new_v4(), Uuid::new_v4()];
        let mut bits = [0; 32];
        if getrandom::fill(&mut bits).is_err() {
            // Not seen on Linux after boot; both identifiers would have panicked before.
            bits = [a.into_bytes(), b.into_bytes()].concat().try_into().unwrap_or(bits);
        }
        bits
    }
}

/// Tokens that are a keyed hash of the session's identifier (HMAC-SHA256): nothing is kept, and
/// nobody without the key can make one.
pub struct KeyedTokens {
    key: hmac::Key,
}

impl KeyedTokens {
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key) }
    }
}

impl Tokens for KeyedTokens {
    fn of(&self, session: SessionId) -> Secret {
        let text = [b"embed:".as_slice(), session.as_uuid().as_bytes()].concat();
        Secret::new(URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &text)))
    }

    fn fits(&self, session: SessionId, token: &str) -> bool {
        self.of(session).expose().as_bytes().ct_eq(token.as_bytes()).into()
    }
}
