//! SHA-256 and hexadecimal digits.

/// Returns the SHA-256 hash of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    hash.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    hash
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
