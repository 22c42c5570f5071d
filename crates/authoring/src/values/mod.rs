//! Proposals of the type of a value, and of the converters that lead to it, by an example.

mod currency;
mod dates;
mod marks;

use domain::workflow::{Converter, DecimalMark, FieldFormat, FieldType, NumberFormat};
use serde::Serialize;
use serde_json::Value;

use self::{
    currency::currency_of,
    dates::{dates, looks_like_date},
    marks::decimal_mark,
};

const MAX_PROPOSALS: usize = 10;
/// Characters of an example that are looked at.
const MAX_SAMPLE_CHARS: usize = 500;
/// A number with what is around it, which may be its sign or a multiplier, up to the next number. No
/// dash is between the two, since it could be the sign of either.
const FIRST_NUMBER: &str = r"^(\D*\d+(?:[.,'’\s]\d+)*[^\d–—−-]*[\pL/|][^\d–—−-]*)\d";
/// The same from the last number but one.
const LAST_NUMBER: &str = r"\d([^\d–—−-]*[\pL/|][^\d–—−-]*\d+(?:[.,'’\s]\d+)*\D*)$";

/// A value that an example can be read as.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValueProposal {
    #[serde(rename = "type")]
    pub kind: FieldType,
    pub format: Option<FieldFormat>,
    pub currency: Option<&'static str>,
    pub convert: Vec<Converter>,
    /// What the example becomes.
    pub value: Value,
    pub description: String,
    /// Whether the example could as well have another value, so that the author has to choose.
    #[serde(skip)]
    is_unclear: bool,
}

impl ValueProposal {
    fn new(kind: FieldType, value: Value, description: &str) -> Self {
        let description = description.to_owned();
        let (format, currency, convert) = (None, None, vec![]);
        Self { kind, format, currency, convert, value, description, is_unclear: false }
    }
}

/// Returns what a value of JSON can be read as, the most likely first; nothing for objects, arrays and
/// null.
#[must_use]
pub fn propose_json_values(sample: &Value, language: &str) -> Vec<ValueProposal> {
    match sample {
        Value::Bool(_) => {
            vec![ValueProposal::new(FieldType::Boolean, sample.clone(), "True or false")]
        }
        Value::Number(number) => {
            let whole = number.is_i64() || number.is_u64();
            let kind = if whole { FieldType::Integer } else { FieldType::Number };
            let plain = ValueProposal::new(kind, sample.clone(), "Number");
            let identifier = ValueProposal {
                format: Some(FieldFormat::Plain),
                description: "Number that identifies something".into(),
                ..plain.clone()
            };
            vec![plain, identifier]
        }
        Value::String(text) => propose_values(text, language),
        Value::Null | Value::Array(_) | Value::Object(_) => vec![],
    }
}

/// Returns what a text can be read as, the most likely first; a value that is unclear is never the
/// first. `language` is the language tag of its page, with its region.
#[must_use]
pub fn propose_values(sample: &str, language: &str) -> Vec<ValueProposal> {
    let sample: String = sample.chars().take(MAX_SAMPLE_CHARS).collect();
    let is_unclear = |proposal: &ValueProposal| proposal.is_unclear;
    let dates = dates(&sample, language);
    let parts = if dates.is_empty() { parts(&sample, language) } else { vec![] };
    let (unclear_dates, mut proposals): (Vec<_>, Vec<_>) = dates.into_iter().partition(is_unclear);
    let (unclear_numbers, numbers): (Vec<_>, Vec<_>) =
        numbers(&sample, &[], language).into_iter().partition(is_unclear);
    let text = texts(&sample);
    // A text with few letters is most likely its number.
    let letters = sample.chars().filter(|c| c.is_alphabetic()).count();
    let digits = sample.chars().filter(char::is_ascii_digit).count();
    if letters <= digits.saturating_add(3) {
        proposals.extend(numbers);
        proposals.extend(text);
    } else {
        proposals.extend(text);
        proposals.extend(numbers);
    }
    proposals.extend(unclear_dates);
    proposals.extend(unclear_numbers);
    proposals.extend(parts);
    proposals.truncate(MAX_PROPOSALS);
    proposals
}

/// Returns whether an example looks like a date of which none of its `proposals` is a reading.
pub(crate) fn is_unread_date(sample: &str, language: &str, proposals: &[ValueProposal]) -> bool {
    let is_date = |proposal: &ValueProposal| {
        matches!(proposal.format, Some(FieldFormat::Date | FieldFormat::DateTime))
    };
    !proposals.iter().any(is_date) && looks_like_date(sample, language)
}

fn converted(sample: &str, converters: &[Converter]) -> Option<Value> {
    let first = Value::String(sample.to_owned());
    converters.iter().try_fold(first, |value, converter| converter.apply(&value))
}

/// Returns the number that converters make of an example, after those in `first`; with both decimal
/// marks if these lead to two numbers. An example that shows no mark has that of the language: others
/// may have one.
fn numbers(sample: &str, first: &[Converter], language: &str) -> Vec<ValueProposal> {
    let text = converted(sample, first);
    let Some(text) = text.as_ref().and_then(Value::as_str) else { return vec![] };
    let currency = currency_of(text, language);
    let order = match decimal_mark(language) {
        // Of Arabic and Persian digits, the mark counts as a comma.
        DecimalMark::Point if !has_arabic_digits(text) => [DecimalMark::Point, DecimalMark::Comma],
        DecimalMark::Point | DecimalMark::Comma => [DecimalMark::Comma, DecimalMark::Point],
    };
    let mut found: Vec<(Value, Vec<Converter>, DecimalMark)> = Vec::new();
    for decimal_mark in order {
        let mut convert = first.to_vec();
        convert.push(Converter::Number(NumberFormat { decimal_mark }));
        let Some(value) = converted(sample, &convert) else { continue };
        if found.iter().all(|(other, _, _)| *other != value) {
            found.push((value, convert, decimal_mark));
        }
    }
    let (has_two, has_zero) = (found.len() > 1, begins_with_zero(text));
    let found = found.into_iter().map(|(value, convert, mark)| {
        let whole = value.is_i64() || value.is_u64();
        let kind = if whole && currency.is_none() { FieldType::Integer } else { FieldType::Number };
        let mut description = if has_two {
            described_as_one_of_two(text, &value, currency, mark)
        } else {
            described(text, whole, currency, mark)
        };
        if has_zero {
            description.push_str(". The zero at its beginning is lost");
        }
        let proposal = ValueProposal::new(kind, value, &description);
        ValueProposal { currency, convert, is_unclear: has_two || has_zero, ..proposal }
    });
    found.collect()
}

/// Describes the number of a text. One without decimals says which mark is expected before those of others.
fn described(text: &str, whole: bool, currency: Option<&str>, mark: DecimalMark) -> String {
    let name = name_of(mark);
    let others = format!("If another account has decimals, a {name} is expected before them");
    let is_shown = has_between_digits(text, mark);
    match currency {
        Some(code) if whole && !is_shown => format!("Amount in {code}. {others}"),
        Some(code) => format!("Amount in {code}: number with a decimal {name}"),
        None if whole && is_shown => format!("Whole number; the decimal mark is a {name}"),
        None if whole => format!("Whole number. {others}"),
        None => format!("Number with a decimal {name}"),
    }
}

/// Describes one of the two numbers that a text may have, by what its mark means then.
fn described_as_one_of_two(
    text: &str,
    value: &Value,
    currency: Option<&str>,
    mark: DecimalMark,
) -> String {
    let number =
        currency.map_or_else(|| "Number".to_owned(), |currency| format!("Amount in {currency}"));
    let shown = if has_between_digits(text, DecimalMark::Point) {
        DecimalMark::Point
    } else {
        DecimalMark::Comma
    };
    let name = name_of(shown);
    let meaning = if shown == mark { "is before the decimals" } else { "separates thousands" };
    format!("{number}: {value}, if the {name} {meaning}. The text does not show which is meant")
}

const fn name_of(mark: DecimalMark) -> &'static str {
    match mark {
        DecimalMark::Comma => "comma",
        DecimalMark::Point => "point",
    }
}

/// Returns whether a mark is between two digits of a text. In Arabic, others stand for the two.
fn has_between_digits(text: &str, mark: DecimalMark) -> bool {
    let marks = match mark {
        DecimalMark::Comma => [',', '\u{66b}'],
        DecimalMark::Point => ['.', '\u{66c}'],
    };
    let chars: Vec<char> = text.chars().collect();
    chars.windows(3).any(|part| {
        let [before, between, after] = part else { return false };
        before.is_numeric() && marks.contains(between) && after.is_numeric()
    })
}

/// Returns whether the first number of a text begins with a zero that no amount has, as a postcode, a
/// telephone number or another identifier may.
fn begins_with_zero(text: &str) -> bool {
    const ZEROS: [char; 5] = ['0', '\u{660}', '\u{6f0}', '\u{966}', '\u{ff10}'];
    let mut digits = text.chars().skip_while(|c| !c.is_numeric());
    digits.next().is_some_and(|first| ZEROS.contains(&first))
        && digits.next().is_some_and(char::is_numeric)
}

fn has_arabic_digits(text: &str) -> bool {
    text.contains(|c: char| matches!(c, '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}'))
}

/// Returns the first and the last number of a text that has a few, such as "6 of 12 tasks".
fn parts(sample: &str, language: &str) -> Vec<ValueProposal> {
    let pieces = sample.split(|c: char| !c.is_numeric() && !matches!(c, '.' | ','));
    let count = pieces.filter(|piece| piece.contains(char::is_numeric)).count();
    if !(2..=4).contains(&count) {
        return vec![];
    }
    let named =
        [(FIRST_NUMBER, "First number in the text"), (LAST_NUMBER, "Last number in the text")];
    let parts = named.into_iter().flat_map(|(pattern, name)| {
        let found = numbers(sample, &[Converter::Match(pattern.to_owned())], language);
        found.into_iter().map(move |proposal| {
            let description = format!("{name}. {}", proposal.description);
            ValueProposal { description, ..proposal }
        })
    });
    parts.collect()
}

fn texts(sample: &str) -> Vec<ValueProposal> {
    let mut found: Vec<ValueProposal> = Vec::new();
    let mut add = |convert: Vec<Converter>, description: &str| {
        let value = converted(sample, &convert);
        let Some(value) = value.filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        else {
            return;
        };
        if found.iter().all(|other| other.value != value) {
            let proposal = ValueProposal::new(FieldType::String, value, description);
            found.push(ValueProposal { convert, ..proposal });
        }
    };
    if sample.split_whitespace().collect::<Vec<_>>().join(" ") == sample {
        add(vec![], "Text");
    } else {
        add(vec![Converter::Trim], "Text, with single spaces");
    }
    add(vec![Converter::Match(r"^\s*\p{L}[^:]{0,60}:\s*(.+)$".into())], "Text after the colon");
    if sample.starts_with('/') || sample.contains("://") {
        add(vec![Converter::Match(r"/(\d+)(?:[/?#]|$)".into())], "Number in the address");
    }
    add(vec![Converter::Match(r"^\D*(\d+)\D*$".into())], "Digits, as text");
    add(vec![Converter::Match(r"([^\s@<>(]+@[^\s@<>),]+)".into())], "Email address in the text");
    found
}
