//! The text of a part of an address, as it is written and decoded.

use std::ops::Range;

use url::form_urlencoded;

use super::pieces::Before;

/// The decoded text of a part.
pub(super) struct Decoded {
    pub(super) text: String,
    /// For each byte of the text, and for its end, where it begins as it is written; empty if what is
    /// written is no UTF-8.
    starts: Vec<usize>,
}

impl Decoded {
    pub(super) fn of(written: &str, before: Before<'_>) -> Self {
        // A plus sign is a space in a query alone.
        let has_spaces = matches!(before, Before::Parameter(_));
        let mut bytes = Vec::with_capacity(written.len());
        let mut starts = Vec::with_capacity(written.len().saturating_add(1));
        let mut rest = written.as_bytes();
        loop {
            starts.push(written.len().saturating_sub(rest.len()));
            let escaped = match rest {
                [b'%', high, low, after @ ..] => byte_of(*high, *low).map(|byte| (byte, after)),
                _ => None,
            };
            let plain = rest.split_first().map(|(byte, after)| {
                (if has_spaces && *byte == b'+' { b' ' } else { *byte }, after)
            });
            let Some((byte, after)) = escaped.or(plain) else { break };
            bytes.push(byte);
            rest = after;
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self { text, starts },
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Self { text, starts: vec![] }
            }
        }
    }

    /// Returns where a range of the text is as it is written; `None` if that is no UTF-8.
    pub(super) fn written(&self, range: &Range<usize>) -> Option<Range<usize>> {
        Some(*self.starts.get(range.start)?..*self.starts.get(range.end)?)
    }
}

/// Returns the byte of two hexadecimal digits.
fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)?.saturating_mul(16).saturating_add(digit(low)?))
}

/// Returns whether a text ends with an escape of something else than a letter or a digit: what is
/// encoded in a parameter may have been encoded before.
pub(super) fn ends_with_escape(text: &str) -> bool {
    let mut last = text.bytes().rev();
    let (Some(low), Some(high), Some(b'%')) = (last.next(), last.next(), last.next()) else {
        return false;
    };
    byte_of(high, low).is_some_and(|byte| !byte.is_ascii_alphanumeric())
}

/// Returns a text as a whole part, or within one.
pub(super) fn encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

/// Returns a text, or its first characters and `…`.
pub(super) fn start_of(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns a text, or `…` and its last characters.
pub(super) fn end_of(text: &str, max_chars: usize) -> String {
    let left_out = text.chars().count().saturating_sub(max_chars);
    if left_out == 0 {
        return text.to_owned();
    }
    format!("…{}", text.chars().skip(left_out).collect::<String>())
}
