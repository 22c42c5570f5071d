//! The currency of an amount, by its sign or its code.

use std::collections::BTreeSet;

/// Codes of ISO 4217.
const CODES: &[&str] = &[
    "AUD", "BRL", "CAD", "CHF", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF", "INR", "JPY", "MXN",
    "NOK", "NZD", "PLN", "SEK", "SGD", "TWD", "USD",
];
/// Signs of one currency each.
const SIGNS: &[(char, &str)] = &[('€', "EUR"), ('£', "GBP"), ('₹', "INR"), ('¥', "JPY")];
/// The letters directly before a dollar sign.
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

/// Returns the code of the only currency in a text. A code, which is more exact, counts before a sign.
pub(super) fn currency_of(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let code = |word: &str| CODES.iter().find(|code| **code == word).copied();
    let codes: BTreeSet<_> = words.filter_map(code).collect();
    if !codes.is_empty() {
        return only(&codes);
    }
    let is_sign = |c: char| c == '$' || SIGNS.iter().any(|(sign, _)| *sign == c);
    let signs = text.char_indices().filter(|(_, c)| is_sign(*c));
    let signs = signs.map(|(at, sign)| currency_of_sign(text.get(..at)?, sign));
    only(&signs.collect::<Option<BTreeSet<_>>>()?)
}

fn only(found: &BTreeSet<&'static str>) -> Option<&'static str> {
    found.first().copied().filter(|_| found.len() == 1)
}

/// Returns the currency of a sign, which the letters directly before it belong to.
fn currency_of_sign(before: &str, sign: char) -> Option<&'static str> {
    let rest = before.trim_end_matches(char::is_alphabetic);
    let letters = before.get(rest.len()..)?;
    if sign == '$' {
        return DOLLARS.iter().find(|(prefix, _)| *prefix == letters).map(|(_, code)| *code);
    }
    let known = SIGNS.iter().find(|(known, _)| *known == sign);
    known.filter(|_| letters.is_empty()).map(|(_, code)| *code)
}
