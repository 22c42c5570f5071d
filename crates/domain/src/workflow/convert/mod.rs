//! Converters: each maps one value to another, or to none.

mod currency;
mod date;
mod minus_word;
mod multiplier;
mod number;
mod sign;

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::number::DecimalMark;
use self::{date::Pattern, number::parse_number};
use super::FieldType;

const MAX_PATTERN_CHARS: usize = 500;
/// The bound on the size of a compiled regular expression.
const MAX_REGEX_BYTES: usize = 256 * 1024;
const MAX_WORDS: usize = 200;

/// A conversion of a value. A value that it does not apply to counts as missing. All read texts; a
/// number or boolean of JSON is converted to its text first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Converter {
    /// Removes spaces around a text, and replaces several in a row by one. No-break spaces and line
    /// breaks count as spaces.
    Trim,
    /// The part of a text that a regular expression matches; with a group, the part that the group
    /// matches. Without `^` and `$`, it may match anywhere. At most 500 characters.
    Match(String),
    /// A text that is none of these, such as "Not provided". Spaces and upper case make no difference.
    Except(Vec<String>),
    /// The only number in a text, such as 1234.5 in "EUR 1.234,50". A text with several numbers has
    /// none, nor has one whose number or sign is unclear, such as "1.2K", "5 million", "99+",
    /// "Balance - 12.50" and "($5.25)".
    Number(NumberFormat),
    /// A date, with a time if the pattern has one, as ISO 8601.
    Date(DateFormat),
    /// True or false, for one of several texts. Spaces and upper case make no difference.
    Boolean(BooleanWords),
    /// Another text for each of several texts: at most 200.
    Map(BTreeMap<String, String>),
}

/// How numbers are written on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NumberFormat {
    /// The mark before the fraction. The other one, spaces and apostrophes may group digits.
    pub decimal_mark: DecimalMark,
}

/// How dates are written on the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DateFormat {
    /// A pattern of date fields (Unicode Technical Standard 35, part 4), such as "HH:mm, d MMMM y".
    /// The fields are y, yy, M to MMMM, d, E to EEEE, H, h, a, m, s and XXX; other letters stand in
    /// single quotes. A year of two digits, yy, is one of 1970 to 2069. Without a day or a month, the
    /// date has none either. Years are those of the Gregorian calendar, from 1800 to 2200.
    pub pattern: String,
    /// The language of the names of months; English if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<DateLanguage>,
}

/// The language of the names of months.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DateLanguage {
    Ar,
    De,
    En,
    Es,
    Fr,
    It,
    Nl,
    Pl,
    Pt,
    Tr,
}

/// The texts that stand for true and false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BooleanWords {
    pub r#true: Vec<String>,
    pub r#false: Vec<String>,
}

impl Converter {
    /// Returns the converted value; `None` if this converter does not apply to it.
    #[must_use]
    pub fn apply(&self, value: &Value) -> Option<Value> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(boolean) => boolean.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        match self {
            Self::Trim => Some(collapse_spaces(&text).into()),
            Self::Match(pattern) => {
                let found = regex(pattern).ok()?.captures(&text)?;
                let part = found.get(1).or_else(|| found.get(0).filter(|_| found.len() == 1))?;
                Some(part.as_str().into())
            }
            Self::Except(texts) => (!contains(texts, &text)).then(|| text.into()),
            Self::Number(format) => parse_number(&text, format.decimal_mark),
            Self::Date(format) => {
                let language = format.language.unwrap_or(DateLanguage::En);
                let pattern = Pattern::parse(&format.pattern).ok()?;
                pattern.read(&collapse_spaces(&text), language).map(Value::from)
            }
            Self::Boolean(words) if contains(&words.r#true, &text) => Some(true.into()),
            Self::Boolean(words) => contains(&words.r#false, &text).then(|| false.into()),
            Self::Map(texts) => texts.get(&collapse_spaces(&text)).map(|to| to.as_str().into()),
        }
    }

    /// Returns why a converter can never apply.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Trim | Self::Number(_) => None,
            Self::Match(pattern) => regex(pattern).err(),
            Self::Except(texts) => words_error(texts.iter(), "except"),
            Self::Date(format) => Pattern::parse(&format.pattern).err(),
            Self::Boolean(BooleanWords { r#true, r#false }) => {
                let both = r#true.iter().find(|text| contains(r#false, text));
                let both = both.map(|text| format!("`{text}` stands for both true and false"));
                words_error(r#true.iter(), "true")
                    .or_else(|| words_error(r#false.iter(), "false"))
                    .or(both)
            }
            Self::Map(texts) => words_error(texts.keys(), "map"),
        }
    }

    /// Returns the type of the values that this converter returns.
    pub(super) const fn output(&self) -> ConvertedType {
        match self {
            Self::Trim | Self::Match(_) | Self::Except(_) | Self::Map(_) => ConvertedType::Text,
            Self::Number(_) => ConvertedType::Number,
            Self::Date(_) => ConvertedType::Date,
            Self::Boolean(_) => ConvertedType::Boolean,
        }
    }
}

/// The type of a value between two converters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConvertedType {
    Text,
    Number,
    Date,
    Boolean,
}

impl ConvertedType {
    /// Returns whether a field can have a value of this type. A text may be that of any type.
    pub(super) const fn fits(self, field: FieldType) -> bool {
        match self {
            Self::Text => !field.has_members(),
            Self::Number => matches!(field, FieldType::Integer | FieldType::Number),
            Self::Date => matches!(field, FieldType::String),
            Self::Boolean => matches!(field, FieldType::Boolean),
        }
    }
}

/// Compiles a regular expression with at most one group, or returns why it cannot be used.
fn regex(pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() || pattern.chars().count() > MAX_PATTERN_CHARS {
        let wrong = format!("a regular expression has 1 to {MAX_PATTERN_CHARS} characters");
        return Err(wrong);
    }
    let regex = RegexBuilder::new(pattern).size_limit(MAX_REGEX_BYTES).build();
    let regex = regex.map_err(|error| {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("`{pattern}` is no regular expression: {reason}")
    })?;
    if regex.captures_len() > 2 {
        return Err(format!("`{pattern}` has more than one group: write (?:…) for the others"));
    }
    Ok(regex)
}

fn words_error<'a>(texts: impl Iterator<Item = &'a String>, name: &str) -> Option<String> {
    let count = texts.count();
    let wrong = || format!("`{name}` must have 1 to {MAX_WORDS} texts");
    (!(1..=MAX_WORDS).contains(&count)).then(wrong)
}

fn contains(texts: &[String], text: &str) -> bool {
    let plain = |text: &str| collapse_spaces(text).to_lowercase();
    let text = plain(text);
    texts.iter().any(|candidate| plain(candidate) == text)
}

/// Returns a text with one space in place of several, and none around it.
pub(super) fn collapse_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
