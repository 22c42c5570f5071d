//! The ports, carried out over real technology. Each module names its own and knows no other.

pub mod credentials;
pub mod diesel;
pub mod http;
pub mod limiter;
pub mod metrics;
pub mod outbound;
pub mod places;
pub mod recordings;
pub mod redaction;
pub mod refusals;
pub mod sandbox;
pub mod seal;
pub mod system;

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The SHA-256 hash of some bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    hash
}
