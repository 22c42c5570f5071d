//! SHA-256, for what is stored as a hash only.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 hash of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
