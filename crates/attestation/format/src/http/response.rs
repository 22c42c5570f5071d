//! Parses responses: exactly one, complete, with an unambiguous length.

use std::ops::Range;

use super::{is_token, split_line};
use crate::descriptor::RevealMode;

/// Maximum length of a response, and of its head.
pub const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_CHUNK_SIZE_DIGITS: usize = 8;

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedResponse {
    /// Its status line and header lines, without their CRLF.
    pub lines: Vec<Vec<u8>>,
    pub head_length: usize,
    pub body: Vec<u8>,
    /// Its headers' names in lower case, and the ranges of their values without surrounding spaces.
    pub(crate) headers: Vec<(String, Range<usize>)>,
    /// The ranges of the body's bytes, in order.
    pub(crate) parts: Vec<Range<usize>>,
}

/// Why a response is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    #[error("it is too long")]
    TooLong,
    #[error("its status line is malformed")]
    StatusLine,
    #[error("its status is {0}, not 200")]
    Status(String),
    #[error("its head does not end, or a line is malformed")]
    Line,
    #[error("header `{0}` occurs twice")]
    Duplicate(String),
    #[error("its length is stated in no way, or in two")]
    Length,
    #[error("its chunks are malformed, or have extensions or trailers")]
    Chunk,
    #[error("it has a content encoding")]
    Encoded,
    #[error("it has another content type")]
    ContentType,
    /// The only error that more bytes can resolve.
    #[error("it is truncated")]
    Truncated,
    #[error("it sets or contains credentials in header `{0}`, which would be revealed")]
    Credentials(String),
    #[error("there are bytes after its end")]
    TrailingBytes,
}

/// Headers whose repetition would be ambiguous.
const UNIQUE_HEADERS: &[&str] =
    &["content-encoding", "content-length", "content-type", "transfer-encoding"];

/// Headers whose values may be credentials, or be used to derive them: cookies (RFC 6265), and the
/// authentication of HTTP (RFC 9110, section 11) and of proxies. A response that is revealed
/// completely to the attestor, and is part of the evidence, must have none of them.
pub const CREDENTIAL_HEADERS: &[&str] = &[
    "authentication-info",
    "authorization",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
];

/// Parses a response with this content type. The response must state its own length, so that it is
/// complete independent of the connection's end. Headers with credentials are refused unless this
/// mode hides their values.
pub fn read(
    bytes: &[u8],
    content_type: &str,
    mode: RevealMode,
) -> Result<ParsedResponse, ResponseError> {
    if bytes.len() > MAX_RESPONSE_BYTES {
        return Err(ResponseError::TooLong);
    }
    let (status, mut rest) = split_line(bytes).ok_or(ResponseError::Truncated)?;
    status_line(status)?;
    let (mut lines, mut headers) = (vec![status.to_vec()], vec![]);
    loop {
        let start = bytes.len() - rest.len();
        let (line, after) = split_line(rest).ok_or(ResponseError::Truncated)?;
        rest = after;
        if line.is_empty() {
            break;
        }
        let (name, value) = header(line)?;
        if mode != RevealMode::ZktlsFull && CREDENTIAL_HEADERS.contains(&name.as_str()) {
            return Err(ResponseError::Credentials(name));
        }
        if UNIQUE_HEADERS.contains(&name.as_str())
            && headers.iter().any(|(known, _)| *known == name)
        {
            return Err(ResponseError::Duplicate(name));
        }
        headers.push((name, start + value.start..start + value.end));
        lines.push(line.to_vec());
    }
    let head_length = bytes.len() - rest.len();
    if head_length > MAX_HEAD_BYTES {
        return Err(ResponseError::TooLong);
    }
    let find = |name: &str| {
        let header = headers.iter().find(|(known, _)| known == name);
        header.and_then(|(_, value)| bytes.get(value.clone()))
    };
    if find("content-encoding").is_some_and(|value| value != b"identity") {
        return Err(ResponseError::Encoded);
    }
    if !find("content-type").is_some_and(|value| has_type(value, content_type)) {
        return Err(ResponseError::ContentType);
    }
    let parts = match (find("content-length"), find("transfer-encoding")) {
        (Some(length), None) => vec![counted_body(bytes.len(), head_length, length)?],
        (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => {
            chunked_body(bytes, head_length)?
        }
        _ => return Err(ResponseError::Length),
    };
    let body = parts.iter().flat_map(|part| bytes.get(part.clone()).unwrap_or_default());
    Ok(ParsedResponse { lines, head_length, body: body.copied().collect(), headers, parts })
}

fn status_line(line: &[u8]) -> Result<(), ResponseError> {
    let rest = line.strip_prefix(b"HTTP/1.1 ").ok_or(ResponseError::StatusLine)?;
    let (status, reason) = rest.split_at_checked(3).ok_or(ResponseError::StatusLine)?;
    let is_valid = status.iter().all(u8::is_ascii_digit)
        && (reason.is_empty() || reason.starts_with(b" "))
        && reason.iter().all(|byte| (0x20..0x7f).contains(byte));
    if !is_valid {
        return Err(ResponseError::StatusLine);
    }
    if status == b"200" {
        Ok(())
    } else {
        Err(ResponseError::Status(String::from_utf8_lossy(status).into_owned()))
    }
}

/// Returns a header's name in lower case and the range of its value in the line; refuses folding,
/// and spaces before the colon.
fn header(line: &[u8]) -> Result<(String, Range<usize>), ResponseError> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(ResponseError::Line)?;
    let (name, value) = line.split_at_checked(colon).ok_or(ResponseError::Line)?;
    let value = value.get(1..).unwrap_or_default();
    // White space around a value is SP and HTAB only (RFC 9110, section 5.6.3): some parsers would
    // take other characters as the end of a line.
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let before = value.iter().take_while(|byte| is_space(byte)).count();
    let after = value.iter().rev().take_while(|byte| is_space(byte)).count();
    let value = value.get(before..value.len() - after).unwrap_or_default();
    let is_printable = |byte: &u8| *byte == b'\t' || *byte >= 0x20 && *byte != 0x7f;
    if name.is_empty() || !name.iter().copied().all(is_token) || !value.iter().all(is_printable) {
        return Err(ResponseError::Line);
    }
    let start = colon + 1 + before;
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), start..start + value.len()))
}

/// Returns whether the value is this type, without parameters or with the charset UTF-8.
fn has_type(value: &[u8], content_type: &str) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    let parameters = parameters.trim_matches([' ', '\t']).to_ascii_lowercase();
    essence.trim_matches([' ', '\t']).eq_ignore_ascii_case(content_type)
        && matches!(parameters.as_str(), "" | "charset=utf-8" | "charset=\"utf-8\"")
}

fn counted_body(all: usize, head: usize, length: &[u8]) -> Result<Range<usize>, ResponseError> {
    let digits = (1..=9).contains(&length.len()) && length.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(length).ok().filter(|_| digits);
    let length: usize = text.and_then(|text| text.parse().ok()).ok_or(ResponseError::Length)?;
    if all > head + length {
        return Err(ResponseError::TrailingBytes);
    }
    if all < head + length { Err(ResponseError::Truncated) } else { Ok(head..all) }
}

/// Parses chunks (RFC 9112, section 7.1) without extensions and trailers.
fn chunked_body(bytes: &[u8], head: usize) -> Result<Vec<Range<usize>>, ResponseError> {
    let mut rest = bytes.get(head..).unwrap_or_default();
    let mut parts = vec![];
    loop {
        let (size, after) = split_line(rest).ok_or(ResponseError::Truncated)?;
        let digits = (1..=MAX_CHUNK_SIZE_DIGITS).contains(&size.len())
            && size.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(size).ok().filter(|_| digits);
        let size = text.and_then(|text| usize::from_str_radix(text, 16).ok());
        let size = size.ok_or(ResponseError::Chunk)?;
        let start = bytes.len() - after.len();
        let (_, after) = after.split_at_checked(size).ok_or(ResponseError::Truncated)?;
        let (end, after) = after.split_at_checked(2).ok_or(ResponseError::Truncated)?;
        if end != b"\r\n" {
            return Err(ResponseError::Chunk);
        }
        rest = after;
        if size == 0 {
            break;
        }
        parts.push(start..start + size);
    }
    if rest.is_empty() { Ok(parts) } else { Err(ResponseError::TrailingBytes) }
}
