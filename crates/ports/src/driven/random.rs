//! Random identifiers and random bytes.

/// A source of unpredictable identifiers and numbers.
pub trait RandomSource: Send + Sync {
    /// Returns a new identifier; identifiers are ordered by time.
    fn new_id(&self) -> u128;

    /// Returns a uniformly distributed number, for jitter.
    fn random_u16(&self) -> u16;

    /// Returns 256 random bits.
    fn random_bytes(&self) -> [u8; 32];
}
