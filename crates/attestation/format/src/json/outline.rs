//! The structure of a JSON text (RFC 8259), with all undeclared values hidden.
//!
//! The decision about each byte depends on visible bytes only: a text with a zero digit for each
//! hidden byte has the same outline. Names therefore stay visible in each object on the path to a
//! declared value, where a hidden name could be a duplicate; they are hidden in all other objects.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::{JsonError, MAX_DEPTH};
use crate::zk::ByteClass;

/// The hidden ranges of a text, and its declared part.
pub(crate) struct Outline {
    /// In the order of the text, not empty, not adjacent.
    pub(crate) hidden: Vec<(Range<usize>, ByteClass)>,
    /// A text with the declared values in their literal form, and `null` for each other value.
    pub(crate) declared: String,
}

/// Finds the hidden ranges of a text in which the values at these pointers (RFC 6901) are declared.
///
/// # Errors
/// The text is not JSON or nested too deeply, or a declared value is an object or an array.
pub(crate) fn outline<'a>(
    text: &[u8],
    pointers: impl Iterator<Item = &'a str>,
) -> Result<Outline, JsonError> {
    let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let paths: Vec<Vec<String>> =
        pointers.map(|pointer| pointer.split('/').skip(1).map(unescaped).collect()).collect();
    let paths: Vec<&[String]> = paths.iter().map(Vec::as_slice).collect();
    let mut reader = OutlineParser { text, at: 0, hidden: vec![], declared: vec![] };
    reader.skip_spaces();
    reader.value(&paths, MAX_DEPTH)?;
    reader.skip_spaces();
    if reader.at < text.len() {
        return Err(reader.error("there are bytes after its end"));
    }
    let declared = String::from_utf8(reader.declared);
    let declared = declared.map_err(|_| JsonError::Text("it is not UTF-8".to_owned()))?;
    Ok(Outline { hidden: reader.hidden, declared })
}

struct OutlineParser<'a> {
    text: &'a [u8],
    at: usize,
    hidden: Vec<(Range<usize>, ByteClass)>,
    declared: Vec<u8>,
}

/// Whether all of a string is visible, or only its quotation marks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StringVisibility {
    Whole,
    Quotes,
}

impl OutlineParser<'_> {
    fn error(&self, why: &str) -> JsonError {
        JsonError::Text(format!("{why} at byte {}", self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    /// Consumes this byte if it is the next one.
    fn consume(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn since(&self, start: usize) -> &[u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Parses a value, with the remaining paths to declared values below it: without one it is
    /// hidden.
    fn value(&mut self, paths: &[&[String]], remaining_depth: usize) -> Result<(), JsonError> {
        let is_declared = paths.iter().any(|path| path.is_empty());
        match self.peek() {
            Some(b'{' | b'[') if is_declared => {
                Err(self.error("a declared value is an object or an array"))
            }
            Some(open @ (b'{' | b'[')) => {
                let remaining_depth = remaining_depth
                    .checked_sub(1)
                    .ok_or_else(|| self.error("it is nested too deeply"))?;
                self.at += 1;
                self.compound(open == b'{', paths, remaining_depth)
            }
            Some(b'"') => {
                let start = self.at;
                self.string(if is_declared {
                    StringVisibility::Whole
                } else {
                    StringVisibility::Quotes
                })?;
                self.declare(is_declared, paths, start);
                Ok(())
            }
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|byte| ByteClass::Scalar.contains(byte)) {
                    self.at += 1;
                }
                if self.at == start {
                    return Err(self.error("a value is missing"));
                }
                if !is_declared {
                    self.hidden.push((start..self.at, ByteClass::Scalar));
                }
                self.declare(is_declared, paths, start);
                Ok(())
            }
        }
    }

    /// Adds a scalar value that started at `start` to the declared text.
    fn declare(&mut self, is_declared: bool, paths: &[&[String]], start: usize) {
        if is_declared {
            let value = self.since(start).to_vec();
            self.declared.extend(value);
        } else if !paths.is_empty() {
            self.declared.extend(b"null");
        }
    }

    /// Parses the members of an object or an array, up to its end.
    fn compound(
        &mut self,
        is_object: bool,
        paths: &[&[String]],
        remaining_depth: usize,
    ) -> Result<(), JsonError> {
        let on_path = !paths.is_empty();
        let (open, close) = if is_object { (b'{', b'}') } else { (b'[', b']') };
        self.write(on_path, open);
        self.skip_spaces();
        if self.consume(close) {
            self.write(on_path, close);
            return Ok(());
        }
        for index in 0_usize.. {
            let name = if is_object {
                self.name(on_path)?
            } else if on_path {
                index.to_string()
            } else {
                String::new()
            };
            let on: Vec<&[String]> = paths
                .iter()
                .filter_map(|path| path.split_first())
                .filter(|(token, _)| **token == name)
                .map(|(_, rest)| rest)
                .collect();
            let before = self.declared.len();
            self.value(&on, remaining_depth)?;
            if on_path && self.declared.len() == before {
                self.declared.extend(b"null");
            }
            self.skip_spaces();
            if self.consume(b',') {
                self.write(on_path, b',');
                self.skip_spaces();
            } else if self.consume(close) {
                self.write(on_path, close);
                return Ok(());
            } else {
                return Err(self.error("a comma or an end is missing"));
            }
        }
        Err(self.error("it has too many members"))
    }

    fn write(&mut self, on_path: bool, byte: u8) {
        if on_path {
            self.declared.push(byte);
        }
    }

    /// Parses the name of a member with its colon and the spaces after it. Returns an empty name if
    /// it is hidden.
    fn name(&mut self, on_path: bool) -> Result<String, JsonError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("a name is missing"));
        }
        self.string(if on_path { StringVisibility::Whole } else { StringVisibility::Quotes })?;
        let mut name = String::new();
        if on_path {
            let written = self.since(start).to_vec();
            let read = serde_json::from_slice(&written);
            name = read.map_err(|error| JsonError::Text(error.to_string()))?;
            self.declared.extend(written);
            self.declared.push(b':');
        }
        self.skip_spaces();
        if !self.consume(b':') {
            return Err(self.error("a colon is missing"));
        }
        self.skip_spaces();
        Ok(name)
    }

    /// Parses a string with its quotation marks. Of a hidden string the prefixes of escapes stay
    /// visible: the backslash and the letter after it, but not the digits of a code.
    fn string(&mut self, shown: StringVisibility) -> Result<(), JsonError> {
        self.at += 1;
        let mut start = self.at;
        loop {
            let byte = self.peek().ok_or_else(|| self.error("a string is not terminated"))?;
            match byte {
                b'"' | b'\\' => {
                    if shown == StringVisibility::Quotes && start < self.at {
                        self.hidden.push((start..self.at, ByteClass::Text));
                    }
                    self.at += 1;
                    if byte == b'"' {
                        return Ok(());
                    }
                    let kind = self.peek().filter(|kind| b"\"\\/bfnrtu".contains(kind));
                    let kind = kind.ok_or_else(|| self.error("an escape is invalid"))?;
                    self.at += 1;
                    start = self.at;
                    if kind == b'u' {
                        self.escape_digits()?;
                    }
                }
                0..0x20 => return Err(self.error("a string contains a control character")),
                _ => self.at += 1,
            }
        }
    }

    /// Parses the four digits of an escape's code.
    fn escape_digits(&mut self) -> Result<(), JsonError> {
        for _ in 0..4 {
            if !self.peek().is_some_and(|digit| digit.is_ascii_hexdigit()) {
                return Err(self.error("the code of an escape is invalid"));
            }
            self.at += 1;
        }
        Ok(())
    }
}
