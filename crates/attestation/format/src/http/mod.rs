//! HTTP/1.1 (RFC 9112), restricted to unambiguous messages.

pub mod request;
pub mod response;
pub mod selective;

use std::ops::Range;

/// The bytes of one direction, some of which are hidden from the attestor.
#[derive(Debug, Clone, Copy)]
pub struct RedactedBytes<'a> {
    /// Hidden bytes are zeros.
    pub bytes: &'a [u8],
    /// In order, not empty, not adjacent.
    pub hidden: &'a [Range<usize>],
}

/// Returns whether a byte may occur in a header's name (RFC 9110, section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Splits at the next CRLF and returns the bytes before and after it.
pub(crate) fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((bytes.get(..end)?, bytes.get(end + 2..)?))
}
