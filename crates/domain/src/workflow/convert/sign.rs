//! The sign of a number, by what is written on both sides of it.

use super::{
    currency::{is_currency_sign, leading_currency, trailing_currency},
    minus_word::{begins_with_minus_word, ends_with_minus_word, is_debit},
    number::is_part_of_word,
};

/// What is written on both sides of a number, with normalized characters.
pub(super) struct Sides<'a> {
    pub(super) before: &'a [char],
    pub(super) after: &'a [char],
    pub(super) form: NumberForm,
}

/// The marks that a number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberForm {
    Digits,
    /// Marks between groups of digits.
    Grouped,
    Fraction,
}

impl<'a> Sides<'a> {
    /// Returns whether the number is negative; `None` if that is unclear, or if the number is only a
    /// bound, as in "99+" and "< 5".
    pub(super) fn is_negative(&self) -> Option<bool> {
        if self.is_in_parentheses() || self.has_minus_word() {
            return None;
        }
        match (self.has_leading_minus()?, self.has_trailing_minus()?) {
            (true, true) => None,
            (leading, trailing) => Some(leading || trailing),
        }
    }

    /// Returns whether a currency is next to the number.
    pub(super) fn has_currency(&self) -> bool {
        trailing_currency(trim_end(self.before)) > 0 || leading_currency(trim_start(self.after)) > 0
    }

    /// Returns what follows the number and its currency.
    pub(super) fn after_currency(&self) -> &'a [char] {
        let after = trim_start(self.after);
        after.get(leading_currency(after)..).unwrap_or_default()
    }

    /// Returns what precedes the number and its currency. A space between the number and its currency
    /// does not count, but one before the currency does.
    pub(super) fn before_currency(&self) -> &'a [char] {
        let before = trim_end(self.before);
        match trailing_currency(before) {
            0 => self.before,
            length => before.get(..before.len() - length).unwrap_or_default(),
        }
    }

    /// Returns whether a number is written as amounts are, rather than as counts and grades.
    pub(super) fn is_amount(&self) -> bool {
        self.form != NumberForm::Digits || self.has_currency()
    }

    /// Returns whether parentheses are directly around an amount: accountants write negative ones so,
    /// others any amount. A count in them is none if it stands beside its name, as in "Reviews (1,234)".
    fn is_in_parentheses(&self) -> bool {
        let (before, after) = (trim_end(self.before_currency()), trim_start(self.after_currency()));
        let (is_percentage, after) = match after.split_first() {
            Some(('%' | '‰', rest)) => (true, trim_start(rest)),
            _ => (false, after),
        };
        let (Some(('(', before)), Some((')', after))) = (before.split_last(), after.split_first())
        else {
            return false;
        };
        let is_alone = !before.iter().chain(after).any(|c| c.is_alphabetic());
        let is_amount = match self.form {
            NumberForm::Digits => false,
            NumberForm::Grouped => is_alone,
            NumberForm::Fraction => is_alone || !is_percentage,
        };
        is_amount
            || self.has_currency()
            || trailing_currency(trim_end(before)) > 0
            || leading_currency(trim_start(after)) > 0
    }

    /// Returns whether a word beside the number or its currency may be its sign.
    fn has_minus_word(&self) -> bool {
        let after = self.after_currency();
        ends_with_minus_word(self.before)
            || ends_with_minus_word(self.before_currency())
            || begins_with_minus_word(after)
            || (self.is_amount() && is_debit(after))
    }

    /// Returns whether a minus sign precedes the number or its currency; `None` if a dash may be one.
    fn has_leading_minus(&self) -> Option<bool> {
        let inner = self.before_currency();
        let head = trim_end(inner);
        let sign = head.split_last().filter(|(last, _)| is_dash(**last));
        let (is_minus, head) = match sign {
            Some((dash, head)) => {
                let is_minus = if trim_end(inner).len() == inner.len() {
                    matches!(dash, '-' | '–') && self.may_precede_minus(head)
                } else {
                    *dash == '-' && self.may_precede_spaced_minus(head)
                };
                is_minus.then_some(())?;
                (true, head)
            }
            None => (false, head),
        };
        let is_bound = matches!(trim_end(head).last(), Some('<' | '>' | '≤' | '≥' | '±' | '∓'));
        (!is_bound && !has_loose_dash(head)).then_some(is_minus)
    }

    /// Returns whether a dash after this text, and next to the number or its currency, is a minus sign.
    /// After a word it is a hyphen, as in "Covid-19". After a code it is a minus sign if the number
    /// cannot be that of a document or event ("CHF-5.00").
    fn may_precede_minus(&self, head: &[char]) -> bool {
        let is_after_code = self.form == NumberForm::Fraction && trailing_currency(head) > 1;
        head.last().is_none_or(|c| *c == ' ' || is_opening(*c)) || is_after_code
    }

    /// Returns whether a dash after this text, and before a space and the number, is a minus sign. It
    /// may also separate a title from its value ("Balance - 12.50") or begin an item ("- 5 apples").
    fn may_precede_spaced_minus(&self, head: &[char]) -> bool {
        let is_alone = self.is_amount() || trim_start(self.after).is_empty();
        is_alone && trim_end(head).last().is_none_or(|c| is_opening(*c))
    }

    /// Returns whether a minus sign follows the number or its currency, as in accounts; `None` if a
    /// dash may be one, or if a plus sign follows.
    fn has_trailing_minus(&self) -> Option<bool> {
        let is_direct = trim_start(self.after).first().is_some_and(|c| is_dash(*c));
        let outer = if is_direct { self.after } else { self.after_currency() };
        let tail = trim_start(outer);
        let Some((first, rest)) = tail.split_first() else { return Some(false) };
        if *first == '+' {
            return None;
        }
        if !is_dash(*first) {
            return Some(false);
        }
        let is_attached = tail.len() == outer.len();
        // A hyphen, as in "5-star": the word is no currency, such as that of a "50-EUR note".
        let is_word =
            rest.first().is_some_and(|c| c.is_alphabetic()) && leading_currency(rest) == 0;
        if *first == '-' && is_direct && is_attached && is_word {
            return Some(false);
        }
        let rest = trim_start(rest);
        let rest = if is_direct && is_attached && self.is_amount() {
            rest.get(leading_currency(rest)..).unwrap_or_default()
        } else {
            rest
        };
        let is_minus = *first == '-' && self.is_amount() && trim_start(rest).is_empty();
        is_minus.then_some(true)
    }
}

/// Returns whether a character is a minus sign, hyphen or dash, once it is normalized.
pub(super) const fn is_dash(c: char) -> bool {
    matches!(c, '-' | '–' | '—')
}

/// Returns whether a sign may follow a character without a space.
pub(super) const fn is_opening(c: char) -> bool {
    matches!(c, ':' | '=' | '(' | '[' | '|' | '"') || is_currency_sign(c)
}

/// Returns whether a dash is neither part of a word nor between two texts, so that it may be the sign
/// of the number after this text: that of a currency which is not known.
fn has_loose_dash(chars: &[char]) -> bool {
    let is_loose = |at: usize| {
        let (before, from) = chars.split_at(at);
        let is_in_word = before.last().is_some_and(|c| is_part_of_word(*c));
        let is_spaced = before.last() == Some(&' ') && from.get(1) == Some(&' ');
        let separates = is_spaced && trim_end(before).last().is_some_and(|c| !is_dash(*c));
        !is_in_word && !separates
    };
    chars.iter().enumerate().any(|(at, c)| is_dash(*c) && is_loose(at))
}

fn trim_end(chars: &[char]) -> &[char] {
    let end = chars.iter().rposition(|c| *c != ' ').map_or(0, |last| last + 1);
    chars.get(..end).unwrap_or_default()
}

pub(super) fn trim_start(chars: &[char]) -> &[char] {
    let start = chars.iter().position(|c| *c != ' ').unwrap_or(chars.len());
    chars.get(start..).unwrap_or_default()
}
