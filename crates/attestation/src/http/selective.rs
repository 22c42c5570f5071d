//! Which bytes of a response are hidden where it is disclosed selectively: the values of headers
//! that reading it does not need, and of its body all that no claim names.
//!
//! **Invariant:** the answer depends on nothing that it hides. A prover who sees everything and a
//! witness who sees only the rest find the same ranges, so that there is one disclosure alone of a
//! response, and a prover chooses nothing.

use std::ops::Range;

use super::{
    Seen,
    response::{self, BadResponse, Response},
};
use crate::{
    descriptor::{Claim, Descriptor, Mode},
    json::{BadJson, Outline, outline},
    zk::Class,
};

/// Headers whose values say how a response is read. All others are hidden.
const NEEDED: &[&str] =
    &["content-encoding", "content-length", "content-type", "transfer-encoding"];
/// What stands in the place of hidden bytes while the rest is read. It is allowed wherever
/// something is hidden: in a header's value, in a string, in an escape behind `\u`, in a number.
const PLACEHOLDER: u8 = b'0';

/// A hidden part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    pub range: Range<usize>,
    pub class: Class,
}

/// Why what is seen of a response is not what may be seen of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDisclosure {
    #[error("the response is refused: {0}")]
    Response(#[from] BadResponse),
    #[error("the body is refused: {0}")]
    Body(#[from] BadJson),
    #[error("something else is hidden than the values that no claim names")]
    Hidden,
}

/// A response of which only what is declared is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selective {
    /// The lines that are seen whole, and the body with zeros where it is hidden.
    pub response: Response,
    pub hidden: Vec<Hidden>,
    /// By claim of the descriptor: the value as JSON text.
    pub claims: Vec<(String, String)>,
}

/// Reads a response of which parts are hidden.
///
/// # Errors
/// It is none that may be attested, or something else is hidden than what has to be.
pub fn read(seen: Seen<'_>, descriptor: &Descriptor) -> Result<Selective, BadDisclosure> {
    let mut readable = seen.bytes.to_vec();
    for hidden in seen.hidden {
        readable.get_mut(hidden.clone()).ok_or(BadDisclosure::Hidden)?.fill(PLACEHOLDER);
    }
    let (mut response, hidden, claims) = examine(&readable, descriptor)?;
    if !hidden.iter().map(|hidden| &hidden.range).eq(seen.hidden) {
        return Err(BadDisclosure::Hidden);
    }
    let lines = response.lines.split_first();
    let status = lines.map(|(status, _)| status.clone()).into_iter();
    let header_lines = lines.map(|(_, lines)| lines).unwrap_or_default();
    let headers = header_lines.iter().zip(&response.headers);
    // A header without a value has nothing to hide, and is left out like the others.
    let needed = headers.filter(|(_, (name, _))| NEEDED.contains(&name.as_str()));
    response.lines = status.chain(needed.map(|(line, _)| line.clone())).collect();
    let mut shown = seen.bytes.to_vec();
    for hidden in seen.hidden {
        shown.get_mut(hidden.clone()).unwrap_or_default().fill(0);
    }
    let body = response.parts.iter().flat_map(|part| shown.get(part.clone()).unwrap_or_default());
    response.body = body.copied().collect();
    Ok(Selective { response, hidden, claims })
}

/// What has to be hidden of a response that is seen whole.
///
/// # Errors
/// It is none that may be attested.
pub fn to_hide(bytes: &[u8], descriptor: &Descriptor) -> Result<Vec<Hidden>, BadDisclosure> {
    examine(bytes, descriptor).map(|(_, hidden, _)| hidden)
}

type Examined = (Response, Vec<Hidden>, Vec<(String, String)>);

fn examine(bytes: &[u8], descriptor: &Descriptor) -> Result<Examined, BadDisclosure> {
    let response = response::read(bytes, &descriptor.content_type, Mode::ZktlsFull)?;
    let pointers = descriptor.claims.iter().map(|claim| claim.pointer.as_str());
    let Outline { hidden, declared } = outline(&response.body, pointers)?;
    let whole = crate::json::read(declared.as_bytes())?;
    let claim = |claim: &Claim| {
        let value = crate::json::value(declared.as_bytes(), &whole, &claim.pointer)?;
        Ok::<_, BadJson>((claim.field.clone(), value))
    };
    let claims = descriptor.claims.iter().map(claim).collect::<Result<_, _>>()?;
    let mut all: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| !NEEDED.contains(&name.as_str()))
        .flat_map(|(_, value)| without_tabs(bytes, value.clone()))
        .map(|range| Hidden { range, class: Class::Printable })
        .collect();
    all.extend(hidden.into_iter().flat_map(|(range, class)| {
        // Within the body, which may come in chunks.
        placed(&response.parts, range).into_iter().map(move |range| Hidden { range, class })
    }));
    Ok((response, all, claims))
}

/// A value without its tabs, which are control characters and stay.
fn without_tabs(bytes: &[u8], value: Range<usize>) -> Vec<Range<usize>> {
    let mut start = value.start;
    let text = bytes.get(value).unwrap_or_default();
    let parts = text.split(|byte| *byte == b'\t').map(|part| {
        let range = start..start + part.len();
        start = range.end + 1;
        range
    });
    parts.filter(|range| !range.is_empty()).collect()
}

/// Where a range of the body is in the response.
fn placed(parts: &[Range<usize>], range: Range<usize>) -> Vec<Range<usize>> {
    let (mut before, mut found) = (0, vec![]);
    for part in parts {
        let after = before + part.len();
        let (start, end) = (range.start.max(before), range.end.min(after));
        if start < end {
            found.push(part.start + start - before..part.start + end - before);
        }
        before = after;
    }
    found
}
