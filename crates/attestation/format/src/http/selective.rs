//! Determines the hidden bytes of a selectively disclosed response: the values of headers that do
//! not affect parsing, and all values of its body that no claim names.
//!
//! **Invariant:** the result does not depend on the hidden bytes. A prover that sees everything and
//! an attestor that sees only the rest find the same ranges, so that a response has exactly one
//! disclosure, and a prover has no choice.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{
    RedactedBytes,
    response::{self, ParsedResponse, ResponseError},
    split_line,
};
use crate::{
    descriptor::{ClaimDescriptor, Descriptor, RevealMode},
    json::{JsonError, Outline, outline},
    zk::ByteClass,
};

/// Headers whose values determine how a response is parsed. All others are hidden.
const FRAMING_HEADERS: &[&str] =
    &["content-encoding", "content-length", "content-type", "transfer-encoding"];
/// Stands for hidden bytes while the rest is parsed. It is valid wherever bytes are hidden: in a
/// header's value, in a string, in an escape after `\u`, in a number.
const PLACEHOLDER: u8 = b'0';

/// A hidden part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenBytes {
    pub range: Range<usize>,
    pub class: ByteClass,
}

/// Why the visible part of a response is not exactly the part that must be visible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectiveError {
    #[error("the response is refused: {0}")]
    Response(#[from] ResponseError),
    #[error("the body is refused: {0}")]
    Body(#[from] JsonError),
    #[error("bytes other than the values without a claim are hidden")]
    Hidden,
}

/// A response of which only the declared parts are visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectiveResponse {
    /// The lines that are completely visible, and the body with zeros for hidden bytes.
    pub response: ParsedResponse,
    pub hidden: Vec<HiddenBytes>,
    /// The value of each claim of the descriptor, as JSON text.
    pub claims: Vec<(String, String)>,
}

/// Parses a response with hidden parts.
///
/// # Errors
/// The response cannot be attested, or other parts are hidden than the required ones.
pub fn read(
    seen: RedactedBytes<'_>,
    descriptor: &Descriptor,
) -> Result<SelectiveResponse, SelectiveError> {
    let mut readable = seen.bytes.to_vec();
    for hidden in seen.hidden {
        readable.get_mut(hidden.clone()).ok_or(SelectiveError::Hidden)?.fill(PLACEHOLDER);
    }
    let (mut response, hidden, claims) = examine(&readable, descriptor)?;
    if !hidden.iter().map(|hidden| &hidden.range).eq(seen.hidden) {
        return Err(SelectiveError::Hidden);
    }
    let lines = response.lines.split_first();
    let status = lines.map(|(status, _)| status.clone()).into_iter();
    let header_lines = lines.map(|(_, lines)| lines).unwrap_or_default();
    let headers = header_lines.iter().zip(&response.headers);
    // A header without a value has nothing to hide, and is left out like the others.
    let needed = headers.filter(|(_, (name, _))| FRAMING_HEADERS.contains(&name.as_str()));
    response.lines = status.chain(needed.map(|(line, _)| line.clone())).collect();
    let mut shown = seen.bytes.to_vec();
    for hidden in seen.hidden {
        shown.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    let body = response.parts.iter().flat_map(|part| shown.get(part.clone()).unwrap_or_default());
    response.body = body.copied().collect();
    Ok(SelectiveResponse { response, hidden, claims })
}

/// Returns the parts of a completely visible response that must be hidden.
///
/// # Errors
/// The response cannot be attested.
pub fn hidden_parts(
    bytes: &[u8],
    descriptor: &Descriptor,
) -> Result<Vec<HiddenBytes>, SelectiveError> {
    examine(bytes, descriptor).map(|(_, hidden, _)| hidden)
}

type ParsedParts = (ParsedResponse, Vec<HiddenBytes>, Vec<(String, String)>);

fn examine(bytes: &[u8], descriptor: &Descriptor) -> Result<ParsedParts, SelectiveError> {
    let response = response::read(bytes, &descriptor.content_type, RevealMode::ZktlsFull)?;
    let pointers = descriptor.claims.iter().map(|claim| claim.pointer.as_str());
    let Outline { hidden, declared } = outline(&response.body, pointers)?;
    let whole = crate::json::read(declared.as_bytes())?;
    let claim = |claim: &ClaimDescriptor| {
        let value = crate::json::value(declared.as_bytes(), &whole, &claim.pointer)?;
        Ok::<_, JsonError>((claim.field.clone(), value))
    };
    let claims = descriptor.claims.iter().map(claim).collect::<Result<_, _>>()?;
    let mut all: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| !FRAMING_HEADERS.contains(&name.as_str()))
        .flat_map(|(_, value)| header_value_ranges(bytes, value))
        .map(|range| HiddenBytes { range, class: ByteClass::Printable })
        .collect();
    all.extend(map_to_response(&response.parts, hidden));
    Ok((response, all, claims))
}

/// Returns the ranges after a header's colon, without tabs and other control characters, which stay
/// visible. The spaces around the value are hidden with it, because a reader that sees neither
/// could not tell where the value starts and ends.
fn header_value_ranges(bytes: &[u8], value: &Range<usize>) -> Vec<Range<usize>> {
    let before = bytes.get(..value.start).unwrap_or_default();
    let spaces = before.iter().rev().take_while(|byte| byte.is_ascii_whitespace());
    let mut start = value.start - spaces.count();
    let after =
        split_line(bytes.get(value.end..).unwrap_or_default()).map_or(0, |(rest, _)| rest.len());
    let text = bytes.get(start..value.end + after).unwrap_or_default();
    let parts = text.split(|byte| *byte < b' ').map(|part| {
        let range = start..start + part.len();
        start = range.end + 1;
        range
    });
    parts.filter(|range| !range.is_empty()).collect()
}

/// Maps ranges of the body to ranges of the response, in order.
fn map_to_response(
    chunks: &[Range<usize>],
    hidden: Vec<(Range<usize>, ByteClass)>,
) -> Vec<HiddenBytes> {
    let (mut before, mut found) = (0, vec![]);
    let mut hidden = hidden.into_iter().peekable();
    for chunk in chunks {
        let after = before + chunk.len();
        while let Some((range, class)) = hidden.peek() {
            let (start, end) = (range.start.max(before), range.end.min(after));
            if start < end {
                let range = chunk.start + start - before..chunk.start + end - before;
                found.push(HiddenBytes { range, class: *class });
            }
            if range.end > after {
                break;
            }
            hidden.next();
        }
        before = after;
    }
    found
}
