//! Time and chance, from the machine; and the tokens made of them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, SubsecRound as _, Utc};
use domain::{id::SessionId, secret::Secret};
use hmac::{Hmac, KeyInit as _, Mac as _};
use ports::clock::{Chance, Clock, Tokens};
use sha2::Sha256;
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
    key: [u8; 32],
}

impl KeyedTokens {
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }
}

impl Tokens for KeyedTokens {
    fn of(&self, session: SessionId) -> Secret {
        // RFC 2104 fills a key up to the block size with zeros.
        let mut block = [0; 64];
        block.iter_mut().zip(self.key).for_each(|(to, from)| *to = from);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(b"embed:");
        mac.update(session.as_uuid().as_bytes());
        Secret::new(URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    fn fits(&self, session: SessionId, token: &str) -> bool {
        self.of(session).expose().as_bytes().ct_eq(token.as_bytes()).into()
    }
}

/// The SHA-256 hash of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    Sha256::digest(bytes).into()
}
