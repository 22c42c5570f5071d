//! The encryption of values that are stored, or that leave the process and come back.

/// Authenticated encryption under the keys of the deployment. The first key encrypts; every known
/// key decrypts, so that keys can be rotated.
pub trait Cipher: Send + Sync {
    /// Encrypts a value. The context names the place where the value is stored and is authenticated
    /// with it: a value that is moved to another place does not decrypt there.
    ///
    /// # Errors
    /// The system has no random bytes for the nonce, or there is no key.
    fn encrypt(&self, context: &str, plaintext: &[u8]) -> Result<Vec<u8>, CipherError>;

    /// Decrypts a value.
    ///
    /// # Errors
    /// The value was altered or belongs to another context, or its key is unknown.
    fn decrypt(&self, context: &str, ciphertext: &[u8]) -> Result<Vec<u8>, CipherError>;

    /// Returns whether the first key, which encrypts new values, encrypted this value.
    fn is_current(&self, context: &str, ciphertext: &[u8]) -> bool;

    /// Encrypts a text.
    ///
    /// # Errors
    /// As [`encrypt`](Self::encrypt).
    fn encrypt_text(&self, context: &str, text: &str) -> Result<Vec<u8>, CipherError> {
        self.encrypt(context, text.as_bytes())
    }

    /// Decrypts a text.
    ///
    /// # Errors
    /// As [`decrypt`](Self::decrypt), or the value is not UTF-8.
    fn decrypt_text(&self, context: &str, ciphertext: &[u8]) -> Result<String, CipherError> {
        String::from_utf8(self.decrypt(context, ciphertext)?).map_err(|_| CipherError::Damaged)
    }
}

/// Why a value was neither encrypted nor decrypted.
#[derive(Debug, thiserror::Error)]
pub enum CipherError {
    #[error("the value was altered or moved, or was encrypted with another key")]
    Damaged,
    #[error("there is no key {0}")]
    NoKey(u8),
}
