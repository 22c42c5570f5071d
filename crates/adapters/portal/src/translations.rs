//! The translations of texts, in the format of gettext (a PO file).
//!
//! A text is looked up as it is in English. Errors have the context `error`: they come with their
//! values filled in, and are compared with the known texts.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use crate::language::PageLanguage;

/// The context of errors.
const ERROR: &str = "error";
/// What separates several findings of one error.
const SEPARATOR: &str = "; ";

static GERMAN: LazyLock<Translations> =
    LazyLock::new(|| Translations::read("de", include_str!("../locales/de.po")));

impl PageLanguage {
    /// Returns the translations of a language; `None` for English, in which the texts are written.
    pub(crate) fn translations(self) -> Option<&'static Translations> {
        match self {
            Self::English => None,
            Self::German => Some(&GERMAN),
        }
    }
}

/// The translations into one language.
#[derive(Default)]
pub(crate) struct Translations {
    texts: HashMap<String, String>,
    errors: HashMap<String, String>,
    /// Errors with values.
    patterns: Vec<(String, String)>,
}

impl Translations {
    /// Reads a file of the portal. A file that cannot be read is logged and gives no translations;
    /// a test reads all files.
    fn read(language: &str, file: &str) -> Self {
        let entries = match read_entries(file) {
            Ok(entries) => entries,
            Err(InvalidFile { line }) => {
                tracing::error!(language, line, "failed to read the translations of the portal");
                return Self::default();
            }
        };
        let mut read = Self::default();
        for Entry { context, id, text } in entries {
            if context.as_deref() != Some(ERROR) {
                read.texts.insert(id, text);
            } else if pieces(&id).iter().any(|piece| matches!(piece, Piece::Placeholder(_))) {
                read.patterns.push((id, text));
            } else {
                read.errors.insert(id, text);
            }
        }
        read
    }

    pub(crate) fn text(&self, english: &str) -> Option<&str> {
        self.texts.get(english).map(String::as_str)
    }

    /// Returns the translation of an error, or of each finding of an error with several.
    pub(crate) fn error(&self, english: &str) -> Option<Cow<'_, str>> {
        if let Some(found) = self.one_error(english) {
            return Some(found);
        }
        let parts: Option<Vec<_>> =
            english.split(SEPARATOR).map(|part| self.one_error(part)).collect();
        Some(parts?.join(SEPARATOR).into())
    }

    fn one_error(&self, english: &str) -> Option<Cow<'_, str>> {
        if let Some(found) = self.errors.get(english) {
            return Some(found.into());
        }
        self.patterns.iter().find_map(|(pattern, text)| {
            let values = matched(pattern, english)?;
            let value = |name: &str| values.get(name).copied().unwrap_or_default();
            let filled = pieces(text).into_iter().map(|piece| match piece {
                Piece::Literal(literal) => literal,
                Piece::Placeholder(name) => value(name),
            });
            Some(Cow::Owned(filled.collect()))
        })
    }
}

/// Returns the values with which a pattern becomes the text; `None` if it cannot.
fn matched<'p, 't>(pattern: &'p str, text: &'t str) -> Option<HashMap<&'p str, &'t str>> {
    let (mut values, mut rest, mut open) = (HashMap::new(), text, None);
    for piece in pieces(pattern) {
        match (piece, open.take()) {
            (Piece::Placeholder(name), None) => open = Some(name),
            // Nothing separates the values.
            (Piece::Placeholder(_), Some(_)) => return None,
            (Piece::Literal(literal), None) => rest = rest.strip_prefix(literal)?,
            (Piece::Literal(literal), Some(name)) => {
                let (value, after) = rest.split_once(literal)?;
                values.insert(name, value);
                rest = after;
            }
        }
    }
    match open {
        Some(name) => {
            values.insert(name, rest);
            Some(values)
        }
        None => rest.is_empty().then_some(values),
    }
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Literal(&'a str),
    /// The name of a value, from lower-case letters and underscores in braces.
    Placeholder(&'a str),
}

/// Splits a text at its placeholders.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut literal, mut from) = (vec![], text, 0);
    while let Some(open) = literal.get(from..).and_then(|rest| rest.find('{')) {
        let open = from + open;
        let (before, after) = literal.split_at(open);
        let name = after.get(1..).and_then(|inner| Some(inner.split_once('}')?.0));
        let is_name = |name: &&str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        let Some(name) = name.filter(is_name) else {
            from = open + 1;
            continue;
        };
        if !before.is_empty() {
            found.push(Piece::Literal(before));
        }
        found.push(Piece::Placeholder(name));
        literal = after.get(name.len() + 2..).unwrap_or_default();
        from = 0;
    }
    if !literal.is_empty() {
        found.push(Piece::Literal(literal));
    }
    found
}

pub(crate) fn capitalize_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// An entry of a file: the English text, and its translation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) context: Option<String>,
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The number of the line that cannot be read, from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidFile {
    pub(crate) line: usize,
}

/// The strings of an entry, as far as they have been read.
#[derive(Default)]
struct OpenEntry {
    context: Option<String>,
    id: Option<String>,
    text: Option<String>,
    is_fuzzy: bool,
}

impl OpenEntry {
    /// Returns the entry if it is complete. The header, whose text is empty, and entries that a
    /// translator has to review are none.
    fn complete(self) -> Option<Entry> {
        let (id, text) = (self.id?, self.text?);
        let counts = !id.is_empty() && !text.is_empty() && !self.is_fuzzy;
        counts.then_some(Entry { context: self.context, id, text })
    }

    /// Returns the string that was written last.
    fn last(&mut self) -> Option<&mut String> {
        self.text.as_mut().or(self.id.as_mut()).or(self.context.as_mut())
    }
}

/// Reads a PO file without plural forms (GNU gettext manual, section "The Format of PO Files").
pub(crate) fn read_entries(file: &str) -> Result<Vec<Entry>, InvalidFile> {
    let (mut entries, mut open) = (vec![], OpenEntry::default());
    for (index, line) in file.lines().enumerate() {
        let invalid = || InvalidFile { line: index + 1 };
        let line = line.trim();
        // A comment or a key after a translation begins the next entry.
        if open.text.is_some() && !line.starts_with('"') {
            entries.extend(std::mem::take(&mut open).complete());
        }
        if line.is_empty() || line.starts_with('#') {
            open.is_fuzzy |= line.starts_with("#,") && line.contains("fuzzy");
        } else if line.starts_with('"') {
            let more = unquoted(line).ok_or_else(invalid)?;
            open.last().ok_or_else(invalid)?.push_str(&more);
        } else {
            let (key, value) = line.split_once(' ').ok_or_else(invalid)?;
            let value = unquoted(value.trim_start()).ok_or_else(invalid)?;
            let target = match key {
                "msgctxt" if open.id.is_none() => &mut open.context,
                "msgid" => &mut open.id,
                "msgstr" if open.id.is_some() => &mut open.text,
                _ => return Err(invalid()),
            };
            if target.replace(value).is_some() {
                return Err(invalid());
            }
        }
    }
    entries.extend(open.complete());
    Ok(entries)
}

/// Reads a quoted string with the escapes of the format.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let (mut read, mut letters) = (String::new(), inner.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return None,
            '\\' => read.push(match letters.next()? {
                'n' => '\n',
                't' => '\t',
                escaped @ ('"' | '\\') => escaped,
                _ => return None,
            }),
            _ => read.push(letter),
        }
    }
    Some(read)
}

#[cfg(test)]
mod tests;
