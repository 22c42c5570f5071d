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
/// Dates that have a day and a year of two digits.
const SHORT_DATES: &[&str] =
    &["M/d/yy", "d/M/yy", "d.M.yy", "M-d-yy", "d-M-yy", "yy-MM-dd", "d-MMMM-yy"];
/// The same on pages in languages that write the year first.
const SHORT_DATES_WITH_YEAR_FIRST: &[&str] = &["yy-MM-dd", "yy/MM/dd", "yy.MM.dd"];
const LANGUAGES_WITH_YEAR_FIRST: &[&str] = &["hu", "ja", "ko", "mn", "zh"];
/// The same where some texts in these languages have the day first.
const SHORT_DATES_IN_EITHER_ORDER: &[&str] =
    &["d/M/yy", "yy/MM/dd", "d-M-yy", "yy-MM-dd", "d.M.yy", "yy.MM.dd"];
const REGIONS_WITH_EITHER_ORDER: &[&str] = &["hk", "mo", "sg"];
const IN_EITHER_ORDER: &[(&str, &str)] = &[("d/M/yy", "yy/MM/dd"), ("d.M.yy", "yy.MM.dd")];
/// Dates in numbers that have another meaning if the day and the month are exchanged.
const EXCHANGEABLE: &[(&str, &str)] = &[("M/d/y", "d/M/y"), ("M-d-y", "d-M-y")];
/// Dates in numbers that have another meaning if the year is first.
const WITH_YEAR_FIRST: &[(&str, &str)] = &[("d-M-yy", "yy-MM-dd"), ("M-d-yy", "yy-MM-dd")];
const DAY_OR_MONTH: &str =
    ". Day and month could be exchanged: the text does not show which is first";
const YEAR_OR_DAY: &str = ". The text does not show whether the year is first or last";
const DATE_OR_OTHER: &str = ". It could be something else, such as a version";
/// How the converter reads a year of two digits.
const SHORT_YEARS: &str = ". Years 00 to 69 are taken for 2000 to 2069";
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
        let found = readings(part, language, &first);
        if !found.is_empty() {
            return found;
        }
    }
    vec![]
}

/// Returns whether a text looks as if it had a date: a date in numbers, or the name of a month beside a day
/// or a year.
pub(super) fn looks_like_date(text: &str, language: &str) -> bool {
    if text.chars().count() > MAX_DATE_CHARS {
        return false;
    }
    let languages = languages(language);
    let is_month = |word: &str| {
        let month = format!("{word} 2000");
        languages.iter().any(|language| read("MMMM y", *language, &month).is_some())
    };
    // Also "3rd".
    let is_day_or_year = |word: &str| {
        let number = word.trim_end_matches(char::is_alphabetic).parse::<u32>();
        number.is_ok_and(|number| (1..=31).contains(&number) || (1800..=2200).contains(&number))
    };
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '[' | ']');
    let words = text.split(is_between).map(|word| word.trim_end_matches(['.', ';', ':', '!']));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.iter().any(|word| is_date_in_numbers(word))
        || words.windows(2).any(|pair| {
            let [one, other] = pair else { return false };
            (is_month(one) && is_day_or_year(other)) || (is_day_or_year(one) && is_month(other))
        })
}

/// Returns whether a word is three numbers of which two may be a day and a month. Without a year of four
/// digits, only those with slashes are hardly anything else.
fn is_date_in_numbers(word: &str) -> bool {
    let (word, _) = word.split_once('T').unwrap_or((word, ""));
    ['/', '-', '.'].into_iter().any(|sign| {
        let parts: Vec<_> = word.split(sign).collect();
        let [first, middle, last] = parts.as_slice() else { return false };
        let is_year = |part: &str| part.chars().count() == 4 && part.chars().all(char::is_numeric);
        // Digits that are not in ASCII are not looked at.
        let is_short = |part: &str| {
            (1..=2).contains(&part.chars().count())
                && part.chars().all(char::is_numeric)
                && part.parse::<u32>().ok().is_none_or(|number| (1..=31).contains(&number))
        };
        let is_short_year =
            |part: &str| sign == '/' && part.len() == 2 && part.parse::<u32>().is_ok();
        is_short(middle)
            && ((is_short(first) && (is_year(last) || is_short_year(last)))
                || (is_year(first) && is_short(last)))
    })
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
fn readings(text: &str, tag: &str, first: &[Converter]) -> Vec<ValueProposal> {
    let languages = languages(tag);
    let mut found: Vec<ValueProposal> = Vec::new();
    for pattern in patterns(text, tag) {
        // Only names depend on the language.
        let count = if pattern.contains("MMMM") { languages.len() } else { 1 };
        for language in languages.iter().take(count) {
            let Some(value) = read(&pattern, *language, text) else { continue };
            let doubt = doubt(&pattern, *language, text, tag);
            let is_unclear = doubt.is_some();
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
            let years = if pattern.contains("yy") { SHORT_YEARS } else { "" };
            let doubt = doubt.unwrap_or_default();
            let description = format!("{named}, written as {pattern}{years}{doubt}");
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

/// Returns why a text that a pattern reads could have another meaning; `None` if it hardly has one.
fn doubt(pattern: &str, language: DateLanguage, text: &str, tag: &str) -> Option<&'static str> {
    let is_read_otherwise = |pairs: &[(&str, &str)]| {
        let both = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let mut others = both
            .filter(|(from, _)| pattern.contains(from))
            .map(|(from, to)| pattern.replace(from, to));
        others.any(|other| read(&other, language, text).is_some())
    };
    // Nothing but three numbers, with points or hyphens between them.
    let is_bare = pattern.contains("yy") && !pattern.contains(['/', 'm', 'E']);
    if is_read_otherwise(EXCHANGEABLE) {
        Some(DAY_OR_MONTH)
    } else if is_read_otherwise(WITH_YEAR_FIRST)
        || (has_either_order(tag) && is_read_otherwise(IN_EITHER_ORDER))
    {
        Some(YEAR_OR_DAY)
    } else if is_bare && !pattern.contains("MMM") {
        Some(DATE_OR_OTHER)
    } else {
        None
    }
}

/// Returns the dates by which a text on a page with a language tag may be one, without its time. `None` if
/// it has no year.
fn dates_of(text: &str, tag: &str) -> Option<&'static [&'static str]> {
    let has_digits = |count: usize| {
        text.split(|c: char| !c.is_numeric()).any(|digits| digits.chars().count() == count)
    };
    let language = tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    if has_digits(4) {
        Some(DATES)
    } else if !has_digits(2) {
        None
    } else if has_either_order(tag) {
        Some(SHORT_DATES_IN_EITHER_ORDER)
    } else if LANGUAGES_WITH_YEAR_FIRST.contains(&language.as_str()) {
        Some(SHORT_DATES_WITH_YEAR_FIRST)
    } else {
        Some(SHORT_DATES)
    }
}

/// Returns whether the year of a date in numbers is first or last on pages with a language tag.
fn has_either_order(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    let mut parts = tag.split('-');
    parts.next() == Some("zh") && parts.any(|part| REGIONS_WITH_EITHER_ORDER.contains(&part))
}

/// Returns the patterns by which a text on a page with a language tag may be a date, the most likely first.
fn patterns(text: &str, tag: &str) -> Vec<String> {
    let dates = dates_of(text, tag).filter(|_| text.chars().count() <= MAX_DATE_CHARS);
    let Some(dates) = dates else { return vec![] };
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
    for date in dates {
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
    if times.is_empty() && dates == DATES {
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
