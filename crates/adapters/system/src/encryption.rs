//! Encrypts what must be kept but not be readable at rest.

use std::{collections::BTreeSet, fmt, str::FromStr};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ports::encryption::{Cipher, CipherError};

const NONCE_BYTES: usize = 24;
/// The number of a deployment's own key.
const OWN_KEY_NUMBER: u8 = 0;
const MAX_KEYS: usize = 16;
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Authenticated encryption (XChaCha20-Poly1305). The name of the place where a value is kept is
/// bound to it, so that a value moved elsewhere is refused. Each value says which key closed it:
/// the first of them closes, all open.
pub struct XChaChaCipher {
    ciphers: Vec<(u8, XChaCha20Poly1305)>,
}

/// Keys that an operator gives: `NUMBER=KEY` with commas in between, a number from 1 to 255 and 32
/// bytes in base64 each. The first one closes.
#[derive(Clone, Default)]
pub struct EncryptionKeys(Vec<(u8, [u8; 32])>);

impl EncryptionKeys {
    /// Returns whether the operator has configured none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why a text names no keys; it does not repeat them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEncryptionKeys {
    #[error("must be NUMBER=KEY with commas in between, with numbers from 1 to 255")]
    Form,
    #[error("key {0} must be 32 bytes in base64")]
    Length(u8),
    #[error("there are two keys {0}")]
    Twice(u8),
    #[error("there are more than {MAX_KEYS} keys")]
    Many,
}

impl FromStr for EncryptionKeys {
    type Err = InvalidEncryptionKeys;

    fn from_str(text: &str) -> Result<Self, InvalidEncryptionKeys> {
        let (mut keys, mut numbers) = (vec![], BTreeSet::new());
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (number, key) = part.split_once('=').ok_or(InvalidEncryptionKeys::Form)?;
            let number = number.trim().parse().ok().filter(|number| *number != OWN_KEY_NUMBER);
            let number: u8 = number.ok_or(InvalidEncryptionKeys::Form)?;
            let key = BASE64.decode(key.trim()).ok().and_then(|key| key.try_into().ok());
            if !numbers.insert(number) {
                return Err(InvalidEncryptionKeys::Twice(number));
            }
            keys.push((number, key.ok_or(InvalidEncryptionKeys::Length(number))?));
        }
        if keys.len() > MAX_KEYS { Err(InvalidEncryptionKeys::Many) } else { Ok(Self(keys)) }
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(number, _)| number)).finish()
    }
}

impl XChaChaCipher {
    /// With a deployment's own key alone.
    #[must_use]
    pub fn new(own: &[u8; 32]) -> Self {
        Self::with(own, &EncryptionKeys::default())
    }

    /// With the keys that an operator gives; the own one opens what it closed before them.
    #[must_use]
    pub fn with(own: &[u8; 32], keys: &EncryptionKeys) -> Self {
        let all = keys.0.iter().map(|(number, key)| (*number, key)).chain([(OWN_KEY_NUMBER, own)]);
        let ciphers = all.map(|(number, key)| (number, XChaCha20Poly1305::new(key.into())));
        Self { ciphers: ciphers.collect() }
    }

    /// The same, which also opens what an earlier own key closed.
    #[must_use]
    pub fn opening(mut self, earlier: Option<&[u8; 32]>) -> Self {
        let earlier = earlier.map(|key| (OWN_KEY_NUMBER, XChaCha20Poly1305::new(key.into())));
        self.ciphers.extend(earlier);
        self
    }
}

impl Cipher for XChaChaCipher {
    /// Whether it was closed with the key that closes now. Own keys have one number: which of two
    /// closed a value is seen by opening it.
    fn is_current(&self, place: &str, sealed: &[u8]) -> bool {
        let Some((first, cipher)) = self.ciphers.first() else { return false };
        let same = self.ciphers.iter().filter(|(number, _)| number == first).count();
        sealed.first() == Some(first) && (same == 1 || decrypt(cipher, place, sealed).is_ok())
    }

    /// The key's number, nonce and ciphertext, in this order.
    fn encrypt(&self, place: &str, plain: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (number, cipher) = self.ciphers.first().ok_or(CipherError::NoKey(OWN_KEY_NUMBER))?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| CipherError::Damaged)?;
        let payload = Payload { msg: plain, aad: place.as_bytes() };
        let closed = cipher.encrypt(&XNonce::from(nonce), payload);
        let closed = closed.map_err(|_| CipherError::Damaged)?;
        Ok([&[*number], nonce.as_slice(), &closed].concat())
    }

    fn decrypt(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let number = *sealed.first().ok_or(CipherError::Damaged)?;
        let mut opened = Err(CipherError::NoKey(number));
        for (_, cipher) in self.ciphers.iter().filter(|(known, _)| *known == number) {
            opened = decrypt(cipher, place, sealed);
            if opened.is_ok() {
                break;
            }
        }
        opened
    }
}

fn decrypt(cipher: &XChaCha20Poly1305, place: &str, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
    let (_, rest) = sealed.split_first().ok_or(CipherError::Damaged)?;
    let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(CipherError::Damaged)?;
    let payload = Payload { msg, aad: place.as_bytes() };
    cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| CipherError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_is_whole_and_in_its_place() {
        let seal = XChaChaCipher::new(&[7; 32]);
        let mut sealed = seal.encrypt_text("webhooks.secret", "whsec_x").unwrap();
        assert_eq!(seal.decrypt_text("webhooks.secret", &sealed).unwrap(), "whsec_x");
        assert!(seal.decrypt_text("webhooks.header", &sealed).is_err());
        assert!(XChaChaCipher::new(&[8; 32]).decrypt_text("webhooks.secret", &sealed).is_err());
        assert!(!sealed.windows(7).any(|window| window == b"whsec_x"));
        sealed[30] ^= 1;
        assert!(seal.decrypt_text("webhooks.secret", &sealed).is_err());
        assert!(seal.decrypt_text("webhooks.secret", &[1, 2]).is_err());
        assert!(seal.decrypt_text("webhooks.secret", &[]).is_err());
    }

    #[test]
    fn the_first_key_closes_and_all_open() {
        let key = |byte| BASE64.encode([byte; 32]);
        let old = XChaChaCipher::new(&[7; 32]);
        let before = old.encrypt_text("place", "kept").unwrap();
        let keys = format!("2={}, 1={}", key(2), key(1).trim_end_matches('='));
        let new = XChaChaCipher::with(&[7; 32], &keys.parse().unwrap());
        assert_eq!(new.decrypt_text("place", &before).unwrap(), "kept");
        let after = new.encrypt_text("place", "kept").unwrap();
        assert_eq!(
            (new.is_current("place", &before), new.is_current("place", &after)),
            (false, true)
        );
        assert!(matches!(old.decrypt_text("place", &after), Err(CipherError::NoKey(2))));
        let mut moved = after.clone();
        moved[0] = 1;
        assert!(matches!(new.decrypt_text("place", &moved), Err(CipherError::Damaged)));
        let without = XChaChaCipher::with(&[9; 32], &format!("2={}", key(2)).parse().unwrap());
        assert_eq!(without.decrypt_text("place", &after).unwrap(), "kept");
        assert!(matches!(without.decrypt_text("place", &before), Err(CipherError::Damaged)));
    }

    #[test]
    fn an_earlier_own_key_opens_and_does_not_close() {
        let old = XChaChaCipher::new(&[7; 32]);
        let before = old.encrypt_text("place", "kept").unwrap();
        let new = XChaChaCipher::new(&[8; 32]).opening(Some(&[7; 32]));
        assert_eq!(new.decrypt_text("place", &before).unwrap(), "kept");
        let after = new.encrypt_text("place", "kept").unwrap();
        assert!(!new.is_current("place", &before) && new.is_current("place", &after));
        assert!(old.decrypt_text("place", &after).is_err());
        assert_eq!(
            XChaChaCipher::new(&[8; 32]).opening(None).decrypt_text("place", &after).unwrap(),
            "kept"
        );
    }

    #[test]
    fn keys_are_checked_and_not_repeated() {
        let key = BASE64.encode([3; 32]);
        let bad = |text: &str| text.parse::<EncryptionKeys>().unwrap_err();
        for form in [&key, "x=y", &format!("0={key}"), &format!("256={key}")] {
            assert_eq!(bad(form), InvalidEncryptionKeys::Form, "{form}");
        }
        assert_eq!(bad("1=AAAA"), InvalidEncryptionKeys::Length(1));
        assert_eq!(bad(&format!("1={key},1={key}")), InvalidEncryptionKeys::Twice(1));
        let many: Vec<_> = (1..=17).map(|number| format!("{number}={key}")).collect();
        assert_eq!(bad(&many.join(",")), InvalidEncryptionKeys::Many);
        let keys: EncryptionKeys = format!("9={key}").parse().unwrap();
        assert_eq!(format!("{keys:?}"), "[9]");
    }
}
