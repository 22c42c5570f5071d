//! Numbers as pages write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    multiplier::{begins_with_amount_multiplier, begins_with_multiplier, ends_with_multiplier},
    sign::{NumberForm, Sides, is_dash, is_opening, trim_start},
};

/// Digits of a number: as many as every JSON reader keeps (RFC 8259, section 6).
const MAX_DIGITS: usize = 15;

/// The mark between the integer and the fraction of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DecimalMark {
    #[serde(rename = ".")]
    Point,
    #[serde(rename = ",")]
    Comma,
}

/// Returns the only number in a text, if it is clear what it is.
pub(super) fn parse_number(text: &str, mark: DecimalMark) -> Option<Value> {
    let shown = text.chars().filter(|c| !is_direction_mark(*c));
    let chars: Vec<char> = shown.map(normalize).collect();
    let start = chars.iter().position(char::is_ascii_digit)?;
    let length = token_length(chars.get(start..)?);
    let (before, after) = (chars.get(..start)?, chars.get(start + length..)?);
    if after.iter().any(char::is_ascii_digit) {
        return None;
    }
    let mut token: String = chars.get(start..start + length)?.iter().collect();
    let marks = leading_marks(before, mark)?;
    let before = before.get(..start - marks)?;
    if marks > 0 {
        token.insert_str(0, "0.");
    }
    let (integer, fraction) = split(&token, mark)?;
    let form = if !fraction.is_empty() {
        NumberForm::Fraction
    } else if token.len() > integer.len() {
        NumberForm::Grouped
    } else {
        NumberForm::Digits
    };
    let sides = Sides { before, after, form };
    if before.last().is_some_and(|c| is_part_of_word(*c)) || is_part_of_number(&sides) {
        return None;
    }
    let is_negative = sides.is_negative()?;
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

/// Returns whether a character only says in which direction its neighbours are written, as in amounts of
/// the Unicode CLDR in Arabic. Those that reverse the order of digits are not among them.
const fn is_direction_mark(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}'
    )
}

/// Returns the character that stands for the same in a number, in ASCII except for dashes that are
/// longer than a minus sign.
fn normalize(c: char) -> char {
    /// The digits zero of Arabic, Persian, Devanagari and full-width numbers; the others follow.
    const ZEROS: [char; 4] = ['\u{660}', '\u{6f0}', '\u{966}', '\u{ff10}'];
    let digit = ZEROS.iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(*zero))?;
        char::from_digit(value, 10)
    });
    match c {
        '\u{2212}' | '\u{2010}' | '\u{2011}' | '\u{2796}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2012}' | '\u{2013}' => '–',
        '\u{2014}' | '\u{2015}' | '\u{2e3a}' | '\u{2e3b}' => '—',
        '\u{ff0b}' => '+',
        '\u{ff08}' => '(',
        '\u{ff09}' => ')',
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
        // India groups digits in twos in front of the last three. A group never begins with zero:
        // "0.123" has the other decimal mark.
        let fits = (1..=3).contains(&first.len())
            && !first.starts_with('0')
            && middle.iter().all(|group| (2..=3).contains(&group.len()))
            && last.len() == 3;
        if !same || !fits {
            return None;
        }
    }
    Some((groups.concat(), fraction.to_owned()))
}

/// Returns how many decimal marks precede the first digit: one in ".75". `None` if a mark there may be
/// something else.
fn leading_marks(before: &[char], mark: DecimalMark) -> Option<usize> {
    let Some((last @ ('.' | ','), rest)) = before.split_last() else { return Some(0) };
    let previous = rest.last();
    if *last == '.' && previous.is_some_and(|c| c.is_alphabetic()) {
        // The dot of an abbreviation, as in "Rs.500".
        return Some(0);
    }
    let may_precede = |c: &char| matches!(*c, ' ' | '+') || is_dash(*c) || is_opening(*c);
    let is_decimal = *last == '.' && mark == DecimalMark::Point;
    (is_decimal && previous.is_none_or(may_precede)).then_some(1)
}

/// Returns whether the number is only part of what is meant: a letter, a fraction such as "½" or a
/// multiplier follows.
fn is_part_of_number(sides: &Sides<'_>) -> bool {
    sides.after.first().is_some_and(|c| is_part_of_word(*c))
        || trim_start(sides.after).first().is_some_and(|c| c.is_numeric())
        || begins_with_multiplier(sides.after)
        || begins_with_multiplier(sides.after_currency())
        || (sides.has_currency() && begins_with_amount_multiplier(sides.after))
        || (sides.is_amount()
            && [sides.before, sides.before_currency()].into_iter().any(ends_with_multiplier))
}

/// Returns whether a character next to a number makes it part of a name or of an abbreviation.
pub(super) fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
