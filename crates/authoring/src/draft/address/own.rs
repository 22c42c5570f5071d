//! Whether the text of an address may be that of the author's account.

use super::{KnownValues, words::Plain};

/// From this length on, hexadecimal digits alone are taken for an identifier.
const MIN_HEX_DIGITS: usize = 16;
/// From this length on, letters with digits are taken for an identifier.
const MIN_MIXED_CHARS: usize = 8;
/// From this length on, a number is taken for an identifier also if a hyphen joins it to other text.
const MIN_JOINED_DIGITS: usize = 5;
/// The lengths of the groups of a UUID (RFC 9562, section 4).
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Returns whether a text may tell one account from another: it is an identifier by its form, equals
/// what was read of the author's account, or has a word that is or does so.
pub(super) fn may_be_own(plain: &Plain<'_>, read: &KnownValues) -> bool {
    if plain.before.is_page_number(plain.text) {
        return false;
    }
    let has_value = |value: &String| value == plain.text || !plain.places_of(value).is_empty();
    is_own_number(plain.text)
        || is_identifier(plain.text)
        || has_identifier(plain)
        || read.values().any(has_value)
}

fn has_identifier(plain: &Plain<'_>) -> bool {
    let separates = |c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | '@');
    let mut end = 0_usize;
    plain.text.split_inclusive(separates).any(|text| {
        let start = end;
        end = end.saturating_add(text.len());
        let word = text.trim_end_matches(separates);
        let range = start..start.saturating_add(word.len());
        let is_long_number = |text: &str| text.len() >= MIN_JOINED_DIGITS && is_own_number(text);
        (is_own_number(word) && plain.is_identifying(&range))
            || is_identifier(word.trim_matches(['-', '_', '.', '@']))
            || word.split('-').any(|text| is_long_number(text) || is_mixed(text) || is_hex(text))
    })
}

fn is_identifier(text: &str) -> bool {
    let has_hex_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid =
        text.split('-').map(str::len).eq(UUID_GROUPS) && text.split('-').all(has_hex_digits);
    let is_mail =
        text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    is_mixed(text) || is_hex(text) || is_uuid || is_mail
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a number may tell an account: it is no date.
fn is_own_number(text: &str) -> bool {
    is_number(text) && !is_compact_date(text)
}

/// Returns whether a text is a date without signs, such as `20261124`, also with a time, such as
/// `20261124T120000Z` (ISO 8601, basic format): of the years 1900 to 2099.
fn is_compact_date(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time.strip_suffix('Z').unwrap_or(time))),
        None => (text, None),
    };
    let pair = |text: &str, at: usize| {
        text.get(at..at.saturating_add(2))
            .filter(|pair| is_number(pair))
            .and_then(|pair| pair.parse::<u8>().ok())
    };
    let is_within = |text: &str, at: usize, least: u8, most: u8| {
        pair(text, at).is_some_and(|number| (least..=most).contains(&number))
    };
    let is_date = date.len() == 8
        && is_number(date)
        && is_within(date, 0, 19, 20)
        && is_within(date, 4, 1, 12)
        && is_within(date, 6, 1, 31);
    is_date
        && time.is_none_or(|time| {
            matches!(time.len(), 4 | 6)
                && is_within(time, 0, 0, 24)
                && is_within(time, 2, 0, 59)
                && (time.len() == 4 || is_within(time, 4, 0, 60))
        })
}

fn is_hex(text: &str) -> bool {
    text.len() >= MIN_HEX_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_mixed(text: &str) -> bool {
    text.len() >= MIN_MIXED_CHARS
        && !is_compact_date(text)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns whether a number is joined to others as in a date, a time, a decimal number or a version.
pub(super) fn is_in_date(before: &str, number: &str, after: &str) -> bool {
    let first = before.get(joined_start(before)..).unwrap_or_default();
    let last = after.get(..joined_end(after)).unwrap_or_default();
    let numbers = format!("{first}{number}{last}");
    let Some(joiner) = numbers.chars().find(|c| joins_numbers(*c)) else { return false };
    let groups: Vec<&str> = numbers.split(joiner).collect();
    if !groups.iter().all(|group| is_number(group)) {
        return false;
    }
    let is_short = |group: &str| group.len() <= 2;
    let is_pair = |group: &str| group.len() == 2;
    let is_year = |group: &str| group.len() == 4 && ["19", "20"].contains(&start(group));
    match (joiner, groups.as_slice()) {
        ('.', _) => true,
        (':', [hour, minute]) => is_short(hour) && is_pair(minute),
        (':', [hour, minute, second]) => is_short(hour) && is_pair(minute) && is_pair(second),
        ('-' | '/', [a, b]) => (is_year(a) && is_short(b)) || (is_short(a) && is_year(b)),
        ('-' | '/', [a, b, c]) => {
            is_short(b) && ((is_year(a) && is_short(c)) || (is_short(a) && is_year(c)))
        }
        _ => false,
    }
}

fn start(group: &str) -> &str {
    group.get(..2).unwrap_or_default()
}

fn joins_numbers(c: char) -> bool {
    matches!(c, '-' | '/' | '.' | ':')
}

/// Returns where the numbers begin that are joined to what follows a text.
fn joined_start(text: &str) -> usize {
    let mut rest = text;
    while let Some(joined) = rest.strip_suffix(joins_numbers) {
        let before = joined.trim_end_matches(|c: char| c.is_ascii_digit());
        if before.len() == joined.len() {
            break;
        }
        rest = before;
    }
    rest.len()
}

/// Returns where the numbers end that are joined to what is before a text.
fn joined_end(text: &str) -> usize {
    let mut rest = text;
    while let Some(joined) = rest.strip_prefix(joins_numbers) {
        let after = joined.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() == joined.len() {
            break;
        }
        rest = after;
    }
    text.len().saturating_sub(rest.len())
}
