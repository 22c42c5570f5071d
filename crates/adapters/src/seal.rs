//! Encrypts what must be kept but not be readable at rest.

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};

const NONCE: usize = 24;

/// Authenticated encryption (XChaCha20-Poly1305) with one key. The name of the place where a
/// value is kept is bound to it, so that a value moved elsewhere is refused.
pub struct Seal {
    cipher: XChaCha20Poly1305,
}

#[derive(Debug, thiserror::Error)]
#[error("a sealed value does not open: it was damaged, or the key is another")]
pub struct Broken;

impl Seal {
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(key.into()) }
    }

    /// Nonce and ciphertext, in this order.
    pub fn close(&self, place: &str, plain: &str) -> Result<Vec<u8>, Broken> {
        self.close_bytes(place, plain.as_bytes())
    }

    pub fn close_bytes(&self, place: &str, plain: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut sealed = vec![0; NONCE];
        getrandom::fill(&mut sealed).map_err(|_| Broken)?;
        let nonce = nonce(&sealed)?;
        let payload = Payload { msg: plain, aad: place.as_bytes() };
        sealed.extend(self.cipher.encrypt(&nonce, payload).map_err(|_| Broken)?);
        Ok(sealed)
    }

    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<String, Broken> {
        String::from_utf8(self.open_bytes(place, sealed)?).map_err(|_| Broken)
    }

    pub fn open_bytes(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, Broken> {
        let (nonce_part, msg) = sealed.split_at_checked(NONCE).ok_or(Broken)?;
        let payload = Payload { msg, aad: place.as_bytes() };
        self.cipher.decrypt(&nonce(nonce_part)?, payload).map_err(|_| Broken)
    }
}

fn nonce(bytes: &[u8]) -> Result<XNonce, Broken> {
    XNonce::try_from(bytes).map_err(|_| Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_is_whole_and_in_its_place() {
        let seal = Seal::new(&[7; 32]);
        let mut sealed = seal.close("webhooks.secret", "whsec_x").unwrap();
        assert_eq!(seal.open("webhooks.secret", &sealed).unwrap(), "whsec_x");
        assert!(seal.open("webhooks.header", &sealed).is_err());
        assert!(Seal::new(&[8; 32]).open("webhooks.secret", &sealed).is_err());
        assert!(!sealed.windows(7).any(|window| window == b"whsec_x"));
        sealed[30] ^= 1;
        assert!(seal.open("webhooks.secret", &sealed).is_err());
        assert!(seal.open("webhooks.secret", &[1, 2]).is_err());
    }
}
