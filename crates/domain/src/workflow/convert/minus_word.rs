//! Words that may be the sign of the number beside them.

use super::multiplier::{first_word, last_word};

/// Words for a minus sign, in lower case.
const MINUS: &[&str] = &["eksi", "meno", "menos", "minus", "moins", "ناقص"];
/// Words that are one in front of a number only: "5 negative reviews" are five, and "5 min" is a time.
const LEADING_MINUS: &[&str] =
    &["min", "negatif", "negativ", "negative", "negativo", "négatif", "سالب"];
/// Words for the debit side of an account, whose amounts may be negative.
const DEBIT: &[&str] =
    &["dare", "debe", "debet", "debit", "dr", "débit", "od", "overdrawn", "soll"];
/// Abbreviations of these words, in capital letters since the small ones are units: "Soll", "débit",
/// "debe", "dare".
const DEBIT_LETTERS: &[&str] = &["D", "S"];

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

/// Returns whether a text begins with what makes an amount of money before it a debit.
pub(super) fn begins_with_debit(chars: &[char]) -> bool {
    let (raw, lower) = first_word(chars);
    DEBIT.contains(&lower.as_str()) || DEBIT_LETTERS.contains(&raw.as_str())
}
