//! HTTP/1.1 (RFC 9112), in the one form that cannot be read in two ways.

pub mod request;
pub mod response;
pub mod selective;

use std::ops::Range;

/// What somebody says over a connection, some of which the witness may not see.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// What is hidden stands there as zeros.
    pub bytes: &'a [u8],
    /// In their order, none empty, none touching another.
    pub hidden: &'a [Range<usize>],
}

/// Whether a byte may stand in a header's name (RFC 9110, section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The bytes up to the next CRLF, and those after it.
pub(crate) fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((bytes.get(..end)?, bytes.get(end + 2..)?))
}
