//! Proposals of the type of a value, and of the converters that lead to it, by an example.

mod currency;

use domain::workflow::{
    Converter, DateFormat, DateLanguage, DecimalMark, FieldFormat, FieldType, NumberFormat,
};
use serde::Serialize;
use serde_json::Value;

use self::currency::currency_of;

const MAX_PROPOSALS: usize = 8;
/// Characters of an example that are looked at.
const MAX_SAMPLE_CHARS: usize = 500;
/// The patterns of dates that are tried, those with a time first.
const DATE_PATTERNS: &[&str] = &[
    "y-MM-dd'T'HH:mm:ssXXX",
    "y-MM-dd HH:mm:ss",
    "y-MM-dd HH:mm",
    "y/MM/dd HH:mm:ss",
    "y/MM/dd HH:mm",
    "y-MM-dd.HH:mm:ss",
    "d.M.y HH:mm:ss",
    "d.M.y HH:mm",
    "d.M.y, HH:mm",
    "d. MMMM y HH:mm",
    "d. MMMM y, HH:mm",
    "d MMMM y HH:mm",
    "d MMMM y, HH:mm",
    "HH:mm, d MMMM y",
    "MMMM d, y h:mm a",
    "MMMM d, y, h:mm a",
    "M/d/y h:mm a",
    "M/d/y, h:mm a",
    "d/M/y HH:mm",
    "y-MM-dd",
    "y/MM/dd",
    "d.M.y",
    "d. MMMM y",
    "d MMMM y",
    "MMMM d, y",
    "EEEE, d MMMM y",
    "EEEE, MMMM d, y",
    "M/d/y",
    "d/M/y",
    "MMMM y",
];
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
}

impl ValueProposal {
    fn new(kind: FieldType, value: Value, description: &str) -> Self {
        let description = description.to_owned();
        Self { kind, format: None, currency: None, convert: vec![], value, description }
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

/// Returns what a text can be read as, the most likely first. `language` is the language tag of its
/// page.
#[must_use]
pub fn propose_values(sample: &str, language: &str) -> Vec<ValueProposal> {
    let sample: String = sample.chars().take(MAX_SAMPLE_CHARS).collect();
    let mut proposals = dates(&sample, language);
    let numbers = numbers(&sample);
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
    proposals.truncate(MAX_PROPOSALS);
    proposals
}

fn converted(sample: &str, converters: &[Converter]) -> Option<Value> {
    let first = Value::String(sample.to_owned());
    converters.iter().try_fold(first, |value, converter| converter.apply(&value))
}

fn dates(sample: &str, language: &str) -> Vec<ValueProposal> {
    let tag = language.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let own = serde_json::from_value::<DateLanguage>(tag.into()).ok();
    let languages = own.into_iter().chain([DateLanguage::En]);
    let languages: Vec<_> =
        if own == Some(DateLanguage::En) { vec![DateLanguage::En] } else { languages.collect() };
    // A date alone, or after some words such as "Member since".
    let before = [None, Some(r"(\d.*\d)"), Some(r":\s*(.+)$"), Some(r"^\D*?(\p{L}+ \d.*\d)")];
    for prefix in before {
        let prefix: Vec<_> =
            prefix.map(|pattern| Converter::Match(pattern.into())).into_iter().collect();
        let mut found: Vec<ValueProposal> = Vec::new();
        for pattern in DATE_PATTERNS {
            for language in &languages {
                let format =
                    DateFormat { pattern: (*pattern).to_owned(), language: Some(*language) };
                let mut convert = prefix.clone();
                convert.push(Converter::Date(format));
                let Some(value) = converted(sample, &convert) else { continue };
                if found.iter().any(|other| other.value == value) {
                    continue;
                }
                let with_time = pattern.contains("mm");
                let format = if with_time { FieldFormat::DateTime } else { FieldFormat::Date };
                let named = if with_time { "Date and time" } else { "Date" };
                found.push(ValueProposal {
                    format: Some(format),
                    convert,
                    description: format!("{named}, written as {pattern}"),
                    ..ValueProposal::new(FieldType::String, value, "")
                });
            }
        }
        if !found.is_empty() {
            found.truncate(3);
            return found;
        }
    }
    vec![]
}

fn numbers(sample: &str) -> Vec<ValueProposal> {
    let currency = currency_of(sample);
    let mut found: Vec<ValueProposal> = Vec::new();
    // The mark that comes last in the text is the more likely one.
    let last = sample.rfind([',', '.']).and_then(|at| sample.get(at..));
    let is_comma = last.is_some_and(|rest| {
        rest.starts_with(',') && rest.trim_end_matches(|c: char| !c.is_ascii_digit()).len() != 4
    });
    let comma = (DecimalMark::Comma, "Number with a decimal comma");
    let point = (DecimalMark::Point, "Number with a decimal point");
    let order = if is_comma { [comma, point] } else { [point, comma] };
    for (decimal_mark, description) in order {
        let convert = vec![Converter::Number(NumberFormat { decimal_mark })];
        let Some(value) = converted(sample, &convert) else { continue };
        if found.iter().any(|other| other.value == value) {
            continue;
        }
        let whole = value.is_i64() || value.is_u64();
        let kind = if whole && currency.is_none() { FieldType::Integer } else { FieldType::Number };
        let description = match currency {
            Some(code) => format!("Amount in {code}: {}", description.to_lowercase()),
            None if whole => "Whole number".to_owned(),
            None => description.to_owned(),
        };
        let proposal = ValueProposal::new(kind, value, &description);
        found.push(ValueProposal { currency, convert, ..proposal });
    }
    found
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
