//! Numbers as pages write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Digits of a number: as many as every JSON reader keeps (RFC 8259, section 6).
const MAX_DIGITS: usize = 15;
/// Words that multiply the number before them, so that it alone is not the number that was meant.
const MULTIPLIERS: &[&str] = &[
    "b",
    "bn",
    "billion",
    "billions",
    "hundred",
    "k",
    "m",
    "md",
    "mi",
    "mil",
    "milhões",
    "milioni",
    "mille",
    "millionen",
    "millones",
    "million",
    "millions",
    "mio",
    "mld",
    "mln",
    "mrd",
    "thousand",
    "tsd",
    "tys",
];

/// The mark between the integer and the fraction of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DecimalMark {
    #[serde(rename = ".")]
    Point,
    #[serde(rename = ",")]
    Comma,
}

/// Returns the only number in a text.
pub(super) fn parse_number(text: &str, mark: DecimalMark) -> Option<Value> {
    let chars: Vec<char> = text.chars().map(normalize).collect();
    let start = chars.iter().position(char::is_ascii_digit)?;
    let length = token_length(chars.get(start..)?);
    let (before, rest) = (chars.get(..start)?, chars.get(start + length..)?);
    if rest.iter().any(char::is_ascii_digit) {
        return None;
    }
    let token: String = chars.get(start..start + length)?.iter().collect();
    let (integer, fraction) = split(&token, mark)?;
    let is_negative = has_leading_minus(before) || has_trailing_minus(rest);
    if has_multiplier(rest) || before.last().is_some_and(|c| is_part_of_word(*c)) {
        return None;
    }
    let integer = integer.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if integer.len() + fraction.len() > MAX_DIGITS {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    let integer = if integer.is_empty() { "0" } else { integer };
    if fraction.is_empty() {
        return format!("{sign}{integer}").parse::<i64>().ok().map(Value::from);
    }
    format!("{sign}{integer}.{fraction}").parse::<f64>().ok().map(Value::from)
}

/// Returns the character that stands for the same in a number, in ASCII.
fn normalize(c: char) -> char {
    /// The digits zero of Arabic, Persian, Devanagari and full-width numbers; the others follow.
    const ZEROS: [char; 4] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{ff10}'];
    let digit = ZEROS.iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(*zero))?;
        char::from_digit(value, 10)
    });
    match c {
        '\u{2212}' | '\u{2010}' | '\u{2011}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2019}' | '\u{ff07}' => '\'',
        '\u{66b}' => ',',
        '\u{66c}' => '.',
        c if c.is_whitespace() => ' ',
        c => digit.unwrap_or(c),
    }
}

/// Returns the length of the digits at the beginning, with the marks between them. A space is such a
/// mark only in front of exactly three digits.
fn token_length(chars: &[char]) -> usize {
    let mut length = 0;
    loop {
        let rest = chars.get(length..).unwrap_or_default();
        let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
        length += digits;
        let rest = rest.get(digits..).unwrap_or_default();
        let next = rest.iter().skip(1).take_while(|c| c.is_ascii_digit()).count();
        let is_mark = match rest.first() {
            Some('.' | ',' | '\'') => next > 0,
            Some(' ') => next == 3,
            _ => false,
        };
        if !is_mark {
            return length;
        }
        length += 1;
    }
}

/// Returns the digits of the integer and of the fraction, if the marks are where they may be.
fn split(token: &str, mark: DecimalMark) -> Option<(String, String)> {
    let mark = match mark {
        DecimalMark::Point => '.',
        DecimalMark::Comma => ',',
    };
    let (integer, fraction) = token.split_once(mark).unwrap_or((token, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let is_mark = |c: char| !c.is_ascii_digit();
    let groups: Vec<&str> = integer.split(is_mark).collect();
    let mut marks = integer.chars().filter(|c| is_mark(*c));
    let first = marks.next();
    let same = marks.all(|mark| Some(mark) == first);
    if let [first, middle @ .., last] = groups.as_slice() {
        // India groups digits in twos in front of the last three.
        let fits = (1..=3).contains(&first.len())
            && middle.iter().all(|group| (2..=3).contains(&group.len()))
            && last.len() == 3;
        if !same || !fits {
            return None;
        }
    }
    Some((groups.concat(), fraction.to_owned()))
}

/// Returns whether a minus sign is before the number, also before a currency symbol.
fn has_leading_minus(before: &[char]) -> bool {
    let is_symbol = |c: &&char| !c.is_alphanumeric() && **c != '-';
    let mut rest = before.iter().rev().skip_while(is_symbol);
    rest.next() == Some(&'-') && rest.next().is_none_or(|c| !is_part_of_word(*c))
}

/// Returns whether a minus sign follows the number immediately, as in accounts.
fn has_trailing_minus(rest: &[char]) -> bool {
    rest.first() == Some(&'-') && rest.get(1).is_none_or(|c| !is_part_of_word(*c))
}

/// Returns whether the number is only part of what is meant: a letter or the word of a multiplier
/// follows.
fn has_multiplier(rest: &[char]) -> bool {
    if rest.first().is_some_and(|c| is_part_of_word(*c)) {
        return true;
    }
    let word: String = rest
        .iter()
        .skip_while(|c| **c == ' ')
        .take_while(|c| c.is_alphabetic())
        .flat_map(|c| c.to_lowercase())
        .collect();
    MULTIPLIERS.contains(&word.as_str())
}

/// Returns whether a character next to a number makes it part of a name or of an abbreviation.
fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
