//! How the date in an example is written.

use domain::workflow::{Converter, DateFormat, DateLanguage, FieldFormat, FieldType};
use serde_json::Value;

use super::{ValueProposal, converted};

/// Readings as a date, and as many again for the date alone where there is a time.
const MAX_DATES: usize = 4;
/// The date in a date and time of ISO 8601.
const DATE_ALONE: &str = r"^(\d{4}-\d{2}-\d{2})T";
/// Characters of a text that may be a date.
const MAX_DATE_CHARS: usize = 100;
const DATE_AND_TIME: &str = "Date and time";
/// What may be cut off before a date: words without digits. A dash or another sign may change what the
/// date means, except for a hyphen in a word.
const BEFORE: &str = r"^(?:(?:[^\d<>±~+–—−-]|\pL-\pL)*[\s:(])?";
/// What may be cut off after a date: nothing but punctuation. A word may be the half of a day, a zone or
/// an era, and a number another date.
const AFTER: &str = r"[\s.,;!)\]]*$";
/// Words that change what the date or time after them means: halves of a day, zones and eras. In capital
/// letters where the same letters are another word, as "am" and "ist" in German and "est" in French.
const MEANINGFUL_WORDS: &str = "AM PM pm ÖÖ ÖS öö ös ص م صباحا مساء vorm nachm 上午 下午 午前 午後 오전 \
    오후 UTC GMT CET CEST WET WEST EET EEST MSK BST IST JST EST EDT CST CDT MST MDT PST PDT BC BCE AH SH";
/// Dates that have a day. Those in numbers are read with the month first and with the day first.
const DATES: &[&str] = &[
    "y-MM-dd",
    "y/MM/dd",
    "y.MM.dd",
    "d.M.y",
    "d. MMMM y",
    "d MMMM y",
    "d MMMM, y",
    "d-MMMM-y",
    "d 'de' MMMM 'de' y",
    "MMMM d, y",
    "MMMM d y",
    "M/d/y",
    "d/M/y",
    "M-d-y",
    "d-M-y",
];
/// Dates in numbers that have another meaning if the day and the month are exchanged.
const EXCHANGEABLE: &[(&str, &str)] = &[("M/d/y", "d/M/y"), ("M-d-y", "d-M-y")];
/// Times, each with what a text with one has in lower case.
const TIMES: &[(&str, &str)] =
    &[("HH:mm:ss", ":"), ("HH:mm", ":"), ("h:mm:ss a", "m"), ("h:mm a", "m")];
/// What stands between a date and the time after it, with what a text has then in lower case.
const JOINS: &[(&str, &str)] = &[
    (" ", ""),
    (", ", ","),
    ("'T'", "t"),
    (" 'at' ", " at "),
    (", 'at' ", ", at "),
    (" 'um' ", " um "),
    (".", "."),
];

/// Returns how the date in an example is written; nothing if it has none, or if what is beside the date
/// may change what it means.
pub(super) fn dates(sample: &str, language: &str) -> Vec<ValueProposal> {
    let languages = languages(language);
    // A date alone, or beside words: one that begins with a digit, or with the name of a month.
    let cuts = [
        None,
        Some(format!(r"{BEFORE}(\d.*?){AFTER}")),
        Some(format!(r"{BEFORE}(\pL+\.?,?\s+\d.*?){AFTER}")),
    ];
    for cut in cuts {
        let first: Vec<_> = cut.map(Converter::Match).into_iter().collect();
        let part = converted(sample, &first);
        let Some(part) = part.as_ref().and_then(Value::as_str) else { continue };
        let before = sample.rfind(part).and_then(|at| sample.get(..at)).unwrap_or_default();
        if changes_meaning(before, &languages) {
            continue;
        }
        let found = readings(part, &languages, &first);
        if !found.is_empty() {
            return found;
        }
    }
    vec![]
}

/// Returns the languages in which names of months are looked for: that of the page, and English.
fn languages(tag: &str) -> Vec<DateLanguage> {
    let tag = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let own = serde_json::from_value::<DateLanguage>(tag.into()).ok();
    let english = (own != Some(DateLanguage::En)).then_some(DateLanguage::En);
    own.into_iter().chain(english).collect()
}

/// Returns whether a text before a date changes what the date means: by one of its words, or since it
/// has a month, as the first one of "December to January 2026".
fn changes_meaning(before: &str, languages: &[DateLanguage]) -> bool {
    let before = before.replace('.', "");
    let mut words = before.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.any(|word| {
        let month = format!("{word} 2000");
        is_meaningful(word)
            || languages.iter().any(|language| read("MMMM y", *language, &month).is_some())
    })
}

fn is_meaningful(word: &str) -> bool {
    MEANINGFUL_WORDS.split(' ').any(|known| known == word)
}

/// Returns what a text is as a date, by each pattern that applies to it.
fn readings(text: &str, languages: &[DateLanguage], first: &[Converter]) -> Vec<ValueProposal> {
    let mut found: Vec<ValueProposal> = Vec::new();
    for pattern in patterns(text) {
        // Only names depend on the language.
        let count = if pattern.contains("MMMM") { languages.len() } else { 1 };
        for language in languages.iter().take(count) {
            let Some(value) = read(&pattern, *language, text) else { continue };
            let other = exchanged(&pattern);
            let is_unclear = other.is_some_and(|other| read(&other, *language, text).is_some());
            // Two patterns that differ in other texts are two proposals, also for 03/03/2026.
            let is_same =
                |other: &ValueProposal| other.value == value && !(is_unclear && other.is_unclear);
            if found.iter().any(is_same) {
                continue;
            }
            let with_time = pattern.contains("mm");
            let (format, named) = if with_time {
                (FieldFormat::DateTime, DATE_AND_TIME)
            } else {
                (FieldFormat::Date, "Date")
            };
            let unclear =
                ". Day and month could be exchanged: the text does not show which is first";
            let description =
                format!("{named}, written as {pattern}{}", if is_unclear { unclear } else { "" });
            let mut convert = first.to_vec();
            convert.push(converter(&pattern, *language));
            found.push(ValueProposal {
                format: Some(format),
                convert,
                is_unclear,
                ..ValueProposal::new(FieldType::String, value, &description)
            });
        }
    }
    found.truncate(MAX_DATES);
    let alone: Vec<_> = found.iter().filter_map(date_alone).collect();
    found.extend(alone);
    found
}

/// Returns the date of a date and time, as it is written: it is not moved to another time zone. The time is
/// read as well, so that a text of another form is none instead of another date.
fn date_alone(whole: &ValueProposal) -> Option<ValueProposal> {
    let step = Converter::Match(DATE_ALONE.to_owned());
    let value = step.apply(&whole.value)?;
    let mut convert = whole.convert.clone();
    convert.push(step);
    let written = whole.description.strip_prefix(DATE_AND_TIME).unwrap_or_default();
    Some(ValueProposal {
        format: Some(FieldFormat::Date),
        convert,
        is_unclear: whole.is_unclear,
        ..ValueProposal::new(FieldType::String, value, &format!("Date without the time{written}"))
    })
}

fn converter(pattern: &str, language: DateLanguage) -> Converter {
    Converter::Date(DateFormat { pattern: pattern.to_owned(), language: Some(language) })
}

fn read(pattern: &str, language: DateLanguage, text: &str) -> Option<Value> {
    converter(pattern, language).apply(&Value::from(text))
}

/// Returns the pattern in which the day and the month are exchanged, if both are written as numbers
/// and the year is last.
fn exchanged(pattern: &str) -> Option<String> {
    let mut pairs = EXCHANGEABLE.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    let (from, to) = pairs.find(|(from, _)| pattern.contains(from))?;
    Some(pattern.replace(from, to))
}

/// Returns the patterns by which a text may be a date, the most likely first.
fn patterns(text: &str) -> Vec<String> {
    let is_year = |digits: &str| digits.chars().count() == 4;
    let has_year = text.split(|c: char| !c.is_numeric()).any(is_year);
    if !has_year || text.chars().count() > MAX_DATE_CHARS {
        return vec![];
    }
    let lower = text.to_lowercase();
    // A weekday is any word to the converter.
    let word = text.split_once(',').map(|(word, _)| word.trim_end_matches('.'));
    let word = word.filter(|word| !word.is_empty() && word.chars().all(char::is_alphabetic));
    let weekday = match word {
        Some(word) if is_meaningful(word) => return vec![],
        Some(_) => "EEEE, ",
        None => "",
    };
    let times = times(&lower);
    let mut patterns: Vec<String> = Vec::new();
    for date in DATES {
        if times.is_empty() {
            patterns.push(format!("{weekday}{date}"));
        }
        for time in &times {
            let joins = JOINS.iter().filter(|(_, written)| lower.contains(*written));
            patterns.extend(joins.map(|(join, _)| format!("{weekday}{date}{join}{time}")));
            if text.chars().take(3).any(|c| c == ':') {
                patterns.extend([", ", " "].map(|join| format!("{time}{join}{date}")));
            }
        }
    }
    if times.is_empty() {
        patterns.push("MMMM y".to_owned());
    }
    patterns
}

/// Returns the patterns of the times that a text in lower case may have; none if it has no time.
fn times(lower: &str) -> Vec<String> {
    if !lower.contains(':') {
        return vec![];
    }
    let mut ends = vec![""];
    if lower.ends_with('z') || lower.contains(['+', '-', '\u{2212}']) {
        ends.extend(["XXX", " XXX"]);
    }
    if lower.contains("uhr") {
        ends.push(" 'Uhr'");
    }
    let times = TIMES.iter().filter(|(_, written)| lower.contains(*written));
    times.flat_map(|(time, _)| ends.iter().map(move |end| format!("{time}{end}"))).collect()
}
