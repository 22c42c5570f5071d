//! The key that encrypts a team's columns, and the form of encrypted values.
//!
//! An encrypted value is text: `enc1.`, the number of its key, `.`, and nonce and ciphertext in
//! base64 (XChaCha20-Poly1305 with a random nonce of 192 bits). Its associated data are the key's
//! number, team, table, column and row.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ring::hmac;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::engine::column::Id;

const CIPHERTEXT_PREFIX: &str = "enc1.";
const NONCE: usize = 24;
/// Separates the key of blind indexes from other uses of a data key.
const INDEX: &[u8] = b"avouch blind index 1";

/// A column whose values are encrypted, by the name that is part of their associated data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column(pub(crate) &'static str);

pub(crate) const TERMS: Column = Column("sessions.terms");
pub(crate) const STATE: Column = Column("sessions.state");
pub(crate) const BODY: Column = Column("notices.body");
pub(crate) const ANSWER: Column = Column("delivery_attempts.answer");
pub(crate) const FIXTURE: Column = Column("definition_drafts.fixture");
pub(crate) const NAME: Column = Column("receivers.name");
pub(crate) const EMAIL: Column = Column("receivers.email");
pub(crate) const PHONE: Column = Column("receivers.phone");

/// Why an encrypted value was refused. The message does not contain the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecryptError {
    #[error("an encrypted value does not open: it was damaged, or moved from another place")]
    Damaged,
    #[error("an encrypted value names data key {0}, which is not there")]
    NoKey(i64),
    #[error("a value that has to be encrypted is not")]
    Plaintext,
    #[error("a value could not be encrypted")]
    Failed,
}

/// A team's unwrapped key; zeroed when dropped.
pub(crate) struct DataKey {
    pub(crate) number: i64,
    pub(crate) team: Id,
    secret: Zeroizing<[u8; 32]>,
}

impl DataKey {
    pub(crate) fn new(number: i64, team: Id, secret: Zeroizing<[u8; 32]>) -> Self {
        Self { number, team, secret }
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.secret).into())
    }

    fn bound(&self, column: Column, row: Id) -> String {
        format!("{CIPHERTEXT_PREFIX}{}:{}:{}:{}", self.number, self.team.0, column.0, row.0)
    }

    /// Encrypts a value for its table, column and row.
    pub(crate) fn encrypt(
        &self,
        column: Column,
        row: Id,
        plain: &str,
    ) -> Result<String, DecryptError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| DecryptError::Failed)?;
        let aad = self.bound(column, row);
        let payload = Payload { msg: plain.as_bytes(), aad: aad.as_bytes() };
        let closed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let closed = closed.map_err(|_| DecryptError::Failed)?;
        let text = BASE64.encode([nonce.as_slice(), &closed].concat());
        Ok(format!("{CIPHERTEXT_PREFIX}{}.{text}", self.number))
    }

    /// Decrypts a value that was encrypted with this key for this table, column and row.
    pub(crate) fn decrypt(
        &self,
        column: Column,
        row: Id,
        value: Encrypted<'_>,
    ) -> Result<String, DecryptError> {
        let bytes = BASE64.decode(value.text).map_err(|_| DecryptError::Damaged)?;
        let (nonce, msg) = bytes.split_first_chunk::<NONCE>().ok_or(DecryptError::Damaged)?;
        let aad = self.bound(column, row);
        let payload = Payload { msg, aad: aad.as_bytes() };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        String::from_utf8(opened.map_err(|_| DecryptError::Damaged)?)
            .map_err(|_| DecryptError::Damaged)
    }

    /// Returns the blind index of a value, by which equal values are found: a keyed hash
    /// (HMAC-SHA256), which reveals nothing without the key.
    pub(crate) fn index(&self, column: &str, plain: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*self.secret);
        let key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, INDEX).as_ref());
        let mark = hmac::sign(&key, format!("{column}:{plain}").as_bytes());
        format!("{CIPHERTEXT_PREFIX}{}.{}", self.number, BASE64.encode(mark))
    }
}

/// The parts of an encrypted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encrypted<'a> {
    pub(crate) key: i64,
    text: &'a str,
}

impl<'a> Encrypted<'a> {
    /// Parses an encrypted value; `None` if the value is plaintext.
    pub(crate) fn of(value: &'a str) -> Option<Self> {
        let (key, text) = value.strip_prefix(CIPHERTEXT_PREFIX)?.split_once('.')?;
        Some(Self { key: key.parse().ok()?, text })
    }
}

/// Generates the bytes of a new key.
pub(crate) fn fresh() -> Result<Zeroizing<[u8; 32]>, DecryptError> {
    let mut secret = Zeroizing::new([0; 32]);
    getrandom::fill(secret.as_mut_slice()).map_err(|_| DecryptError::Failed)?;
    Ok(secret)
}

/// Returns the prefix of values that were encrypted with this key.
pub(crate) fn prefix(number: i64) -> String {
    format!("{CIPHERTEXT_PREFIX}{number}.")
}

/// Returns the associated data of a wrapped key.
pub(crate) fn wrapping(team: Uuid) -> String {
    format!("data_keys/{team}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: i64, team: u128) -> DataKey {
        DataKey::new(number, Id(Uuid::from_u128(team)), Zeroizing::new([7; 32]))
    }

    #[test]
    fn a_value_opens_in_its_own_place_alone() {
        let (one, row) = (key(1, 1), Id(Uuid::from_u128(9)));
        let value = one.encrypt(STATE, row, "canary").unwrap();
        let again = one.encrypt(STATE, row, "canary").unwrap();
        assert!(!value.contains("canary") && value != again, "{value}");
        let parts = Encrypted::of(&value).unwrap();
        assert_eq!(parts.key, 1);
        assert_eq!(one.decrypt(STATE, row, parts).as_deref(), Ok("canary"));
        for (key, column, row, case) in [
            (&one, TERMS, row, "another column"),
            (&one, STATE, Id(Uuid::from_u128(8)), "another row"),
            (&key(1, 2), STATE, row, "another team"),
            (&key(2, 1), STATE, row, "another number"),
        ] {
            assert_eq!(key.decrypt(column, row, parts), Err(DecryptError::Damaged), "{case}");
        }
        for broken in ["enc1.1.", "enc1.1.AAAA", "enc1.1.%", &value[..value.len() - 4]] {
            let broken = Encrypted::of(broken).unwrap();
            assert_eq!(one.decrypt(STATE, row, broken), Err(DecryptError::Damaged));
        }
    }

    #[test]
    fn plaintext_is_told_from_what_is_encrypted() {
        for plain in ["", "{\"state\":\"created\"}", "enc1", "enc1.", "enc1.x.AAAA", "enc2.1.AAAA"]
        {
            assert_eq!(Encrypted::of(plain), None, "{plain}");
        }
    }

    #[test]
    fn an_index_is_the_same_for_equal_values_of_a_column_and_key() {
        let one = key(1, 1);
        let mark = one.index("sessions.reference", "loan-7");
        assert_eq!(mark, one.index("sessions.reference", "loan-7"));
        assert!(!mark.contains("loan"));
        assert_ne!(mark, one.index("sessions.reference", "loan-8"));
        assert_ne!(mark, one.index("sessions.other", "loan-7"));
        let other = DataKey::new(1, one.team, Zeroizing::new([8; 32]));
        assert_ne!(mark, other.index("sessions.reference", "loan-7"));
    }
}
