//! Dates as pages write them, by patterns of Unicode Technical Standard 35, part 4.

use std::{iter::Peekable, ops::RangeInclusive, str::Chars};

use chrono::{NaiveDate, NaiveTime};

use super::DateLanguage;

const MAX_PATTERN_CHARS: usize = 100;
/// Other years are those of another calendar, such as 1404 (Solar Hijri) or 2569 (Buddhist), or no dates
/// that are meant, such as 9999.
const YEARS: RangeInclusive<i32> = 1800..=2200;

/// A pattern of date fields.
#[derive(Debug)]
pub(super) struct Pattern(Vec<PatternPart>);

#[derive(Debug, PartialEq, Eq)]
enum PatternPart {
    Literal(String),
    DateField(DateField),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DateField {
    /// Four digits.
    Year,
    /// Two digits in ASCII: 1970 to 2069.
    ShortYear,
    Month,
    /// A name, or its beginning.
    MonthName,
    Day,
    /// A name of any kind.
    Weekday,
    /// 0 to 23.
    Hour,
    /// 1 to 12.
    HalfDayHour,
    /// `AM` or `PM`.
    HalfDay,
    Minute,
    Second,
    /// `Z`, or hours and minutes such as `+02:00`.
    Offset,
}

impl Pattern {
    /// Reads a pattern, or returns what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.chars().count() > MAX_PATTERN_CHARS {
            return Err(format!("a pattern has 1 to {MAX_PATTERN_CHARS} characters"));
        }
        let mut pieces = Vec::new();
        let mut chars = text.chars().peekable();
        while let Some(first) = chars.next() {
            let piece = match first {
                '\'' => PatternPart::Literal(quoted(&mut chars)?),
                letter if letter.is_ascii_alphabetic() => {
                    let mut length = 1;
                    while chars.next_if_eq(&letter).is_some() {
                        length += 1;
                    }
                    PatternPart::DateField(field(letter, length)?)
                }
                other => PatternPart::Literal(other.to_string()),
            };
            pieces.push(piece);
        }
        let pattern = Self(pieces);
        pattern.complete()?;
        Ok(pattern)
    }

    /// Returns an error if a date by this pattern is not complete.
    fn complete(&self) -> Result<(), String> {
        let count = |wanted: &[DateField]| {
            let fields = self.0.iter().filter(|piece| match piece {
                PatternPart::DateField(field) => wanted.contains(field),
                PatternPart::Literal(_) => false,
            });
            fields.count()
        };
        let years = count(&[DateField::Year, DateField::ShortYear]);
        let months = count(&[DateField::Month, DateField::MonthName]);
        let days = count(&[DateField::Day]);
        let hours = count(&[DateField::Hour, DateField::HalfDayHour]);
        let rules = [
            (years != 1, "the pattern must have one year, as y"),
            (months > 1 || days > 1 || hours > 1, "the pattern has a field twice"),
            (
                months == 0 && hours == 0 && count(&[DateField::Minute]) > 0,
                "months are `MM`: `mm` in small letters are minutes",
            ),
            (days == 1 && months == 0, "a pattern with a day must have a month, as MM"),
            (hours == 1 && days == 0, "a pattern with a time must have a day"),
            (
                count(&[DateField::HalfDayHour]) != count(&[DateField::HalfDay]),
                "h and a, the half of the day, go together",
            ),
            (hours != count(&[DateField::Minute]), "hours and minutes go together"),
            (
                hours == 0 && count(&[DateField::Second, DateField::Offset]) > 0,
                "a pattern with seconds or an offset must have hours",
            ),
        ];
        let wrong = rules.iter().find(|(is_wrong, _)| *is_wrong);
        wrong.map_or(Ok(()), |(_, message)| Err((*message).to_owned()))
    }

    /// Returns the date or time in a text whose spaces are collapsed, as ISO 8601.
    pub(super) fn read(&self, text: &str, language: DateLanguage) -> Option<String> {
        let mut input = DateText { rest: text };
        let mut found = Found::default();
        for piece in &self.0 {
            match piece {
                PatternPart::Literal(literal) => input.literal(literal)?,
                PatternPart::DateField(field) => found.take(*field, &mut input, language)?,
            }
        }
        input.rest.trim().is_empty().then_some(())?;
        found.format()
    }
}

/// Reads the rest of a quoted text; two quotes stand for one.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut literal = String::new();
    loop {
        match chars.next() {
            Some('\'') if chars.next_if_eq(&'\'').is_some() => literal.push('\''),
            Some('\'') if literal.is_empty() => return Ok("'".to_owned()),
            Some('\'') => return Ok(literal),
            Some(other) => literal.push(other),
            None => return Err("a quote is not closed in the pattern".to_owned()),
        }
    }
}

fn field(letter: char, length: usize) -> Result<DateField, String> {
    let field = match (letter, length) {
        ('y', 1 | 4) => DateField::Year,
        ('y', 2) => DateField::ShortYear,
        ('M' | 'L', 1 | 2) => DateField::Month,
        ('M' | 'L', 3 | 4) => DateField::MonthName,
        ('d', 1 | 2) => DateField::Day,
        ('E', 1..=4) => DateField::Weekday,
        ('H', 1 | 2) => DateField::Hour,
        ('h', 1 | 2) => DateField::HalfDayHour,
        ('a', 1) => DateField::HalfDay,
        ('m', 1 | 2) => DateField::Minute,
        ('s', 1 | 2) => DateField::Second,
        ('X', 1..=3) => DateField::Offset,
        _ => {
            let field = letter.to_string().repeat(length);
            let meant = match letter {
                'Y' | 'u' => "years are `y` in small letters",
                'D' => "days of the month are `d` in small letters",
                'S' => "seconds are `s` in small letters; fractions after a point are passed over",
                'A' | 'b' | 'B' => "the half of the day is `a`",
                'k' | 'K' => "hours are `H` from 0 to 23, or `h` from 1 to 12",
                'z' | 'Z' | 'x' | 'O' | 'v' | 'V' => {
                    "an offset is `X`; names of time zones are not read"
                }
                _ => "put words in single quotes",
            };
            return Err(format!("`{field}` is no field of dates that is read: {meant}"));
        }
    };
    Ok(field)
}

struct DateText<'a> {
    rest: &'a str,
}

impl<'a> DateText<'a> {
    /// Consumes a text. Spaces in it stand for any number of spaces, also none.
    fn literal(&mut self, literal: &str) -> Option<()> {
        for expected in literal.chars() {
            if expected.is_whitespace() {
                self.rest = self.rest.trim_start();
                continue;
            }
            let mut chars = self.rest.chars();
            let same = chars.next()?.to_lowercase().eq(expected.to_lowercase());
            same.then_some(())?;
            self.rest = chars.as_str();
        }
        Some(())
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool, max: usize) -> &'a str {
        let chars = self.rest.char_indices().take(max);
        let end = chars.take_while(|(_, c)| accept(*c)).last();
        let end = end.map_or(0, |(at, c)| at + c.len_utf8());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Consumes a number of `min` to `max` digits.
    fn digits(&mut self, min: usize, max: usize) -> Option<u32> {
        let digits = self.take_while(|c| digit(c).is_some(), max);
        (digits.chars().count() >= min).then_some(())?;
        digits.chars().try_fold(0, |number, c| Some(number * 10 + digit(c)?))
    }

    /// Consumes the fraction of a second after a point, if there is one (RFC 3339, section 5.6).
    fn pass_over_fraction(&mut self) {
        let Some(rest) = self.rest.strip_prefix('.') else { return };
        let mut after = DateText { rest };
        if !after.take_while(|c| c.is_ascii_digit(), 9).is_empty() {
            self.rest = after.rest;
        }
    }

    /// Consumes a word, with a dot after it.
    fn word(&mut self) -> Option<String> {
        let is_word = |c: char| c.is_alphabetic() || c == '\u{307}';
        let word = self.take_while(is_word, 30).to_lowercase();
        self.rest = self.rest.strip_prefix('.').unwrap_or(self.rest);
        (!word.is_empty()).then_some(word)
    }
}

/// Returns the value of a digit in ASCII, Arabic or Persian.
fn digit(c: char) -> Option<u32> {
    let zeros = ['0', '\u{660}', '\u{6f0}'];
    zeros.into_iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(zero))?;
        (value < 10).then_some(value)
    })
}

/// The fields that were found.
#[derive(Default)]
struct Found {
    year: i32,
    month: Option<u32>,
    day: Option<u32>,
    hour: Option<u32>,
    is_afternoon: Option<bool>,
    minute: u32,
    second: Option<u32>,
    offset: String,
}

impl Found {
    fn take(
        &mut self,
        field: DateField,
        input: &mut DateText<'_>,
        language: DateLanguage,
    ) -> Option<()> {
        match field {
            DateField::Year => self.year = i32::try_from(input.digits(4, 4)?).ok()?,
            DateField::ShortYear => {
                // In Arabic and Persian digits the year may be one of another calendar.
                input.rest.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
                let year = i32::try_from(input.digits(2, 2)?).ok()?;
                self.year = if year < 70 { 2000 + year } else { 1900 + year };
            }
            DateField::Month => self.month = Some(input.digits(1, 2)?),
            DateField::MonthName => self.month = Some(month(&input.word()?, language)?),
            DateField::Day => self.day = Some(input.digits(1, 2)?),
            DateField::Weekday => drop(input.word()?),
            DateField::Hour => self.hour = Some(input.digits(1, 2)?),
            DateField::HalfDayHour => {
                let hour = input.digits(1, 2)?;
                (1..=12).contains(&hour).then_some(())?;
                self.hour = Some(hour % 12);
            }
            DateField::HalfDay => {
                let text = input.take_while(|c| c.is_alphabetic() || c == '.', 4);
                self.is_afternoon = match text.replace('.', "").to_lowercase().as_str() {
                    "am" => Some(false),
                    "pm" => Some(true),
                    _ => return None,
                };
            }
            DateField::Minute => self.minute = input.digits(1, 2)?,
            DateField::Second => {
                self.second = Some(input.digits(1, 2)?);
                input.pass_over_fraction();
            }
            DateField::Offset => self.offset = offset(input)?,
        }
        Some(())
    }

    fn format(self) -> Option<String> {
        let (year, month, day) = (self.year, self.month.unwrap_or(1), self.day.unwrap_or(1));
        YEARS.contains(&year).then_some(())?;
        let date = NaiveDate::from_ymd_opt(year, month, day)?;
        let precision = match (self.month, self.day) {
            (None, _) => "%Y",
            (Some(_), None) => "%Y-%m",
            (Some(_), Some(_)) => "%Y-%m-%d",
        };
        let date = date.format(precision).to_string();
        let Some(hour) = self.hour else { return Some(date) };
        let hour = if self.is_afternoon == Some(true) { hour + 12 } else { hour };
        let time = NaiveTime::from_hms_opt(hour, self.minute, self.second.unwrap_or(0))?;
        Some(format!("{date}T{}{}", time.format("%H:%M:%S"), self.offset))
    }
}

/// Reads the offset from UTC (RFC 3339, section 5.6).
fn offset(input: &mut DateText<'_>) -> Option<String> {
    if let Some(rest) = input.rest.strip_prefix(['Z', 'z']) {
        input.rest = rest;
        return Some("Z".to_owned());
    }
    let sign = match input.rest.chars().next()? {
        '+' => '+',
        '-' | '\u{2212}' => '-',
        _ => return None,
    };
    input.rest = input.rest.get(input.rest.chars().next()?.len_utf8()..)?;
    let hours = input.digits(2, 2)?;
    input.rest = input.rest.strip_prefix(':').unwrap_or(input.rest);
    let minutes = input.digits(2, 2)?;
    (hours <= 23 && minutes <= 59).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}

/// Returns the number of a month by its name, or by at least three letters with which only its name
/// begins.
fn month(word: &str, language: DateLanguage) -> Option<u32> {
    let mut found = None;
    for (index, names) in months(language).split(' ').enumerate() {
        let mut names = names.split('|');
        let number = u32::try_from(index + 1).ok()?;
        let is_exact = names.clone().any(|name| name == word);
        if is_exact {
            return Some(number);
        }
        if word.chars().count() >= 3 && names.any(|name| name.starts_with(word)) {
            if found.is_some() {
                return None;
            }
            found = Some(number);
        }
    }
    found
}

/// Returns the names of the months, with their other forms: in dates, and as abbreviations that are not
/// the beginning of the name (Unicode CLDR).
const fn months(language: DateLanguage) -> &'static str {
    match language {
        DateLanguage::Ar => {
            "يناير فبراير مارس أبريل|ابريل مايو يونيو يوليو أغسطس|اغسطس سبتمبر أكتوبر|اكتوبر نوفمبر ديسمبر"
        }
        DateLanguage::De => {
            "januar|jänner|jän februar|feber märz|mrz|maerz april mai juni juli august september oktober november dezember"
        }
        DateLanguage::En => {
            "january february march april may june july august september october november december"
        }
        DateLanguage::Es => {
            "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre"
        }
        DateLanguage::Fr => {
            "janvier février|fevrier mars avril mai juin juillet août|aout septembre octobre novembre décembre|decembre"
        }
        DateLanguage::It => {
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
        }
        DateLanguage::Nl => {
            "januari februari maart|mrt april mei juni juli augustus september oktober november december"
        }
        DateLanguage::Pl => {
            "styczeń|stycznia luty|lutego marzec|marca kwiecień|kwietnia maj|maja czerwiec|czerwca lipiec|lipca sierpień|sierpnia wrzesień|września październik|października listopad|listopada grudzień|grudnia"
        }
        DateLanguage::Pt => {
            "janeiro fevereiro março|marco abril maio junho julho agosto setembro outubro novembro dezembro"
        }
        DateLanguage::Tr => {
            "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık"
        }
    }
}
