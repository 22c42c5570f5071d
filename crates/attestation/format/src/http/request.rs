//! Parses requests: the bytes that a client sent, some of which are hidden from the attestor.
//! Hidden bytes are proved not to be control characters, so that no line can start or end in them.

use std::ops::Range;

use super::{RedactedBytes, is_token};
use crate::descriptor::Descriptor;

/// Maximum length of a request.
pub const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// A request that conforms to its descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedRequest {
    /// Its request line and header lines without hidden parts, without their CRLF.
    pub revealed_lines: Vec<Range<usize>>,
    pub hidden: Vec<HiddenPart>,
    /// Visible headers whose values the prover chose.
    pub chosen: Vec<ChosenHeader>,
}

/// A header whose value the descriptor does not fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenHeader {
    /// Its name in lower case.
    pub header: String,
    /// The range of its value in the request.
    pub value: Range<usize>,
}

/// A part that is hidden from the attestor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenPart {
    pub range: Range<usize>,
    /// The header whose value contains it.
    pub header: String,
}

/// Why a request does not conform to its descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("it is too long")]
    TooLong,
    #[error("it does not begin with the request line, Host, Connection and Accept-Encoding")]
    Prefix,
    #[error("its headers do not end, or a line is malformed")]
    Line,
    #[error("a header's name is malformed, or its value has forbidden characters")]
    Header,
    #[error("header `{0}` is not allowed")]
    NotAllowed(String),
    #[error("header `{0}` occurs twice")]
    Duplicate(String),
    #[error("the value of header `{0}` has a tab or another control character")]
    Control(String),
    #[error("header `{0}` does not have the value that the descriptor fixes")]
    Value(String),
    #[error("bytes outside of the hidden headers' values are hidden")]
    HiddenElsewhere,
    #[error("there are bytes after its end")]
    TrailingBytes,
}

/// Parses a request and checks that it conforms to a descriptor.
pub fn read(
    seen: RedactedBytes<'_>,
    descriptor: &Descriptor,
) -> Result<ParsedRequest, RequestError> {
    if seen.bytes.len() > MAX_REQUEST_BYTES {
        return Err(RequestError::TooLong);
    }
    let Descriptor { target, host, .. } = descriptor;
    let first = format!("GET {target} HTTP/1.1\r\n");
    let prefix =
        format!("{first}Host: {host}\r\nConnection: close\r\nAccept-Encoding: identity\r\n");
    let hidden_within = |range: &Range<usize>| {
        seen.hidden.iter().any(|hidden| hidden.start < range.end && range.start < hidden.end)
    };
    if !seen.bytes.starts_with(prefix.as_bytes()) || hidden_within(&(0..prefix.len())) {
        return Err(RequestError::Prefix);
    }
    let mut request =
        ParsedRequest { revealed_lines: line_ranges(&prefix), hidden: vec![], chosen: vec![] };
    let (mut at, mut names) = (prefix.len(), vec![]);
    loop {
        let rest = seen.bytes.get(at..).unwrap_or_default();
        let length = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(RequestError::Line)?;
        let line = at..at + length;
        at = line.end + 2;
        if line.is_empty() {
            break;
        }
        let (name, hidden) = header(seen, &line)?;
        if !descriptor.headers.contains(&name) {
            return Err(RequestError::NotAllowed(name));
        }
        if names.contains(&name) {
            return Err(RequestError::Duplicate(name));
        }
        if hidden.is_empty() {
            let value = line.start + name.len() + ": ".len()..line.end;
            match descriptor.values.get(&name) {
                None => request.chosen.push(ChosenHeader { header: name.clone(), value }),
                Some(fixed) if seen.bytes.get(value) == Some(fixed.as_bytes()) => (),
                Some(_) => return Err(RequestError::Value(name)),
            }
            request.revealed_lines.push(line);
        } else if !descriptor.hidden.contains(&name) {
            return Err(RequestError::HiddenElsewhere);
        }
        let hide = |range| HiddenPart { range, header: name.clone() };
        request.hidden.extend(hidden.into_iter().map(hide));
        names.push(name);
    }
    if let Some(missing) = descriptor.values.keys().find(|name| !names.contains(name)) {
        return Err(RequestError::Value(missing.clone()));
    }
    if at < seen.bytes.len() || hidden_within(&(at..usize::MAX)) {
        return Err(RequestError::TrailingBytes);
    }
    if request.hidden.len() != seen.hidden.len() {
        return Err(RequestError::HiddenElsewhere);
    }
    Ok(request)
}

/// Returns the ranges of the values that a descriptor hides, in a request that conforms to it. They
/// may contain every byte except control characters, which is what the proof shows for hidden
/// bytes: browsers keep cookies with bytes from 0x80 on (RFC 6265bis, section 5.7).
///
/// # Errors
/// As for [`read`] with these values hidden, and if one of them has a control character.
pub fn hidden_ranges(
    bytes: &[u8],
    descriptor: &Descriptor,
) -> Result<Vec<Range<usize>>, RequestError> {
    let (mut hidden, mut rest) = (vec![], bytes);
    while let Some((line, after)) = super::split_line(rest).filter(|(line, _)| !line.is_empty()) {
        let start = bytes.len() - rest.len();
        rest = after;
        let Some(colon) = line.windows(2).position(|pair| pair == b": ") else { continue };
        let (name, value) = line.split_at_checked(colon + 2).unwrap_or_default();
        let name = name.get(..colon).unwrap_or_default();
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if value.is_empty() || !descriptor.hidden.contains(&name) {
            continue;
        }
        if value.iter().any(|byte| *byte < 0x20) {
            return Err(RequestError::Control(name));
        }
        hidden.push(start + colon + 2..start + line.len());
    }
    read(RedactedBytes { bytes, hidden: &hidden }, descriptor)?;
    Ok(hidden)
}

/// Returns a header's name in lower case, and the hidden parts of its value. Nothing else of the
/// line is hidden, and all other characters are visible ASCII.
fn header(
    seen: RedactedBytes<'_>,
    line: &Range<usize>,
) -> Result<(String, Vec<Range<usize>>), RequestError> {
    let text = seen.bytes.get(line.clone()).unwrap_or_default();
    // The two bytes of the CRLF belong to the line.
    let begins = |hidden: &&Range<usize>| (line.start..line.end + 2).contains(&hidden.start);
    let hidden: Vec<_> = seen.hidden.iter().filter(begins).cloned().collect();
    let nameless =
        if hidden.is_empty() { RequestError::Header } else { RequestError::HiddenElsewhere };
    let colon = text.windows(2).position(|pair| pair == b": ").ok_or(nameless)?;
    let (name, value) = text.split_at_checked(colon + 2).ok_or(RequestError::Header)?;
    let value_at = line.start + name.len()..line.end;
    let name = name.get(..colon).unwrap_or_default();
    if hidden.iter().any(|part| part.start < value_at.start || part.end > value_at.end) {
        return Err(RequestError::HiddenElsewhere);
    }
    let mut visible_bytes =
        value.iter().zip(value_at).filter(|(_, at)| !hidden.iter().any(|part| part.contains(at)));
    let visible = visible_bytes.all(|(byte, _)| (0x20..0x7f).contains(byte));
    if name.is_empty() || !name.iter().copied().all(is_token) || !visible {
        return Err(RequestError::Header);
    }
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), hidden))
}

fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut at = 0;
    let lines = text.split_terminator("\r\n").map(|line| {
        let range = at..at + line.len();
        at += line.len() + 2;
        range
    });
    lines.collect()
}
