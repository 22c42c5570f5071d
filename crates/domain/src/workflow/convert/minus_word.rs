//! Words that may be the sign of the number beside them.

use super::{
    currency::leading_currency,
    multiplier::{first_word, last_word},
    sign::trim_start,
};

/// Words for a minus sign, in lower case.
const MINUS: &[&str] = &["eksi", "meno", "menos", "minus", "moins", "ناقص"];
/// Words that are one in front of a number only: "5 negative reviews" are five, and "5 min" is a time.
const LEADING_MINUS: &[&str] =
    &["min", "negatif", "negativ", "negative", "negativo", "négatif", "سالب"];
/// Words for the debit side of an account, whose amounts may be negative.
const DEBIT: &[&str] = &["dare", "debe", "debet", "debit", "dr", "débit", "overdrawn", "soll"];
/// Abbreviations of these words, in capital letters since the small ones are units or other words:
/// "Soll", "débit", "debe", "dare", "overdrawn".
const DEBIT_LETTERS: &[&str] = &["D", "OD", "S"];

/// Returns whether a text ends with a word for a minus sign.
pub(super) fn ends_with_minus_word(chars: &[char]) -> bool {
    let word = last_word(chars);
    MINUS.contains(&word.as_str()) || LEADING_MINUS.contains(&word.as_str())
}

/// Returns whether a text begins with a word for a minus sign.
pub(super) fn begins_with_minus_word(chars: &[char]) -> bool {
    let (_, lower) = first_word(chars);
    MINUS.contains(&lower.as_str())
}

/// Returns whether a text is what makes an amount of money before it a debit, with its currency at most:
/// further words make a phrase of it, as in "3,20 € S-Bahn".
pub(super) fn is_debit(chars: &[char]) -> bool {
    let (raw, lower) = first_word(chars);
    let is_word = DEBIT.contains(&lower.as_str()) || DEBIT_LETTERS.contains(&raw.as_str());
    let skipped = chars.iter().take_while(|c| !c.is_alphabetic()).count();
    let end = skipped.saturating_add(raw.chars().count());
    let rest = trim_start(chars.get(end..).unwrap_or_default());
    let rest = rest.get(leading_currency(rest)..).unwrap_or_default();
    is_word && !rest.iter().any(|c| c.is_alphanumeric())
}
