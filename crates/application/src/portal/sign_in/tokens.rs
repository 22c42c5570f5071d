//! Random tokens, and the hashes by which tokens and accounts are stored and counted.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::secret::Secret;
use ports::{account_store::CodeHash, random::RandomSource};

use crate::digest::sha256;

/// Returns a token of 256 random bits.
pub(crate) fn random_token(random: &dyn RandomSource) -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(random.random_bytes()))
}

/// Returns the hash of a token or code, which is all that is stored of it.
pub(crate) fn hash_of(secret: &Secret) -> CodeHash {
    CodeHash(sha256(secret.expose().as_bytes()))
}

/// Returns the key under which requests about an address are counted: the same however the address
/// is written.
pub(crate) fn account_key(email: &str) -> [u8; 16] {
    let hash = sha256(email.trim().to_lowercase().as_bytes());
    hash.first_chunk().copied().unwrap_or_default()
}
