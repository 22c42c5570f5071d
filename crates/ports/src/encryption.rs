//! Encrypting small values that leave the process and come back.

/// Authenticated encryption under a key of the deployment.
pub trait Cipher: Send + Sync {
    /// Encrypts a text. The context is authenticated with it, so that a value that is moved to
    /// another place does not decrypt there.
    ///
    /// # Errors
    /// The system has no random bytes for the nonce.
    fn encrypt(&self, context: &str, text: &str) -> Result<Vec<u8>, EncryptionError>;

    /// Decrypts a value. `None`: it was altered, belongs to another context, or its key is gone.
    fn decrypt(&self, context: &str, ciphertext: &[u8]) -> Option<String>;
}

/// A value was not encrypted.
#[derive(Debug, thiserror::Error)]
#[error("failed to encrypt a value")]
pub struct EncryptionError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
