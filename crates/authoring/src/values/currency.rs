//! The currency of an amount, by its sign or its code.

use std::collections::BTreeSet;

/// Codes of ISO 4217.
const CODES: &[&str] = &[
    "AUD", "BRL", "CAD", "CHF", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "INR", "JPY", "MXN",
    "NOK", "NZD", "PLN", "SEK", "SGD", "TWD", "USD",
];
/// Signs of one currency each.
const SIGNS: &[(char, &str)] = &[('€', "EUR"), ('£', "GBP"), ('₹', "INR"), (YEN, "JPY")];
const YEN: char = '¥';
/// The letters that belong to a dollar sign.
const DOLLARS: &[(&str, &str)] = &[
    ("", "USD"),
    ("A", "AUD"),
    ("AU", "AUD"),
    ("C", "CAD"),
    ("CA", "CAD"),
    ("HK", "HKD"),
    ("MX", "MXN"),
    ("NT", "TWD"),
    ("NZ", "NZD"),
    ("R", "BRL"),
    ("S", "SGD"),
    ("US", "USD"),
];

/// Returns the code of the only currency in a text on a page with a language tag. A code, which is more
/// exact, counts before a sign.
pub(super) fn currency_of(text: &str, language: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let code = |word: &str| CODES.iter().find(|code| **code == word).copied();
    let codes: BTreeSet<_> = words.filter_map(code).collect();
    if !codes.is_empty() {
        return only(&codes);
    }
    if has_other_code(text) {
        return None;
    }
    let signs = text.char_indices().filter(|(_, c)| is_sign(*c));
    let signs = signs.map(|(at, sign)| {
        let (before, rest) = text.split_at_checked(at)?;
        currency_of_sign(before, sign, rest.strip_prefix(sign)?, language)
    });
    only(&signs.collect::<Option<BTreeSet<_>>>()?)
}

fn only(found: &BTreeSet<&'static str>) -> Option<&'static str> {
    found.first().copied().filter(|_| found.len() == 1)
}

fn is_sign(c: char) -> bool {
    c == '$' || SIGNS.iter().any(|(sign, _)| *sign == c)
}

/// Returns whether directly beside an amount or its sign there is a word that may be the code of another
/// currency.
fn has_other_code(text: &str) -> bool {
    let is_of_amount = |c: char| is_sign(c) || c.is_numeric();
    text.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let is_code = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        is_code
            && text.match_indices(word).any(|(at, _)| {
                let (before, rest) = text.split_at_checked(at).unwrap_or_default();
                let after = rest.get(word.len()..).unwrap_or_default();
                before.trim_end().ends_with(is_of_amount)
                    || after.trim_start().starts_with(is_of_amount)
            })
    })
}

/// Returns the currency of a sign, which letters beside it may belong to.
fn currency_of_sign(before: &str, sign: char, after: &str, language: &str) -> Option<&'static str> {
    let letters = last_letters(before);
    if sign != '$' {
        // This one is the sign of the yuan as well.
        let is_known = sign != YEN || language.split('-').next() == Some("ja");
        let known = SIGNS.iter().find(|(known, _)| *known == sign);
        return known.filter(|_| is_known && letters.is_empty()).map(|(_, code)| *code);
    }
    let dollar =
        |letters: &str| DOLLARS.iter().find(|(own, _)| *own == letters).map(|(_, code)| *code);
    if !letters.is_empty() {
        return dollar(letters);
    }
    // Apart from the sign, capital letters alone belong to it, as in "NZ $5.00" and "5,00 $ CA". A single
    // one may be a word.
    let is_country = |word: &&str| {
        (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let beside = [last_letters(before.trim_end()), first_letters(after.trim_start())];
    match beside.into_iter().find(is_country) {
        Some(word) => dollar(word).filter(|_| word.len() > 1),
        None => dollar(""),
    }
}

/// Returns the letters at the end of a text.
fn last_letters(text: &str) -> &str {
    let rest = text.trim_end_matches(char::is_alphabetic);
    text.get(rest.len()..).unwrap_or_default()
}

/// Returns the letters at the beginning of a text.
fn first_letters(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}
