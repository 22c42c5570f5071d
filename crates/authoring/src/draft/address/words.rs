//! The words within a part of an address that equal values, and the names that stand there.

use std::{cmp::Reverse, ops::Range};

use super::{
    KnownValues, MAX_ADDRESS_PARTS,
    own::is_in_date,
    pieces::Before,
    text::{Decoded, ends_with_escape},
};

/// The characters that a value other than a number has at least to be a word within a part: shorter
/// ones, such as `de`, are in many addresses by chance.
const MIN_WORD_CHARS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text beside words and names of the same part.
    Plain,
    /// A whole part, or a word within one that equals a value.
    Word,
    /// A word that may be less than the whole of an identifier, such as `ada` in `ada-lovelace`.
    Joined,
    /// The name of a value in braces.
    Name,
}

/// A stretch of a part. All one after the other are the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    pub(super) written: &'a str,
    pub(super) kind: Kind,
}

/// Decoded text without names.
#[derive(Clone, Copy)]
pub(super) struct Plain<'a> {
    pub(super) text: &'a str,
    /// What is before its part.
    pub(super) before: Before<'a>,
    pub(super) follows_name: bool,
    pub(super) precedes_name: bool,
}

/// Returns the stretches of a part. The whole part is one unless it has a name, or a word that equals a
/// value and not the whole. Of words that overlap, the longest is one, and the first of those that
/// have the same length.
pub(super) fn stretches<'a>(
    written: &'a str,
    before: Before<'_>,
    values: &KnownValues,
) -> Vec<Stretch<'a>> {
    let whole = Stretch { written, kind: Kind::Word };
    let named = named(written);
    let has_name = named.iter().any(|stretch| stretch.kind == Kind::Name);
    if !has_name {
        let text = Decoded::of(written, before).text;
        if before.is_page_number(&text) || values.values().any(|value| *value == text) {
            return vec![whole];
        }
    }
    let mut stretches = Vec::new();
    for (at, stretch) in named.iter().enumerate() {
        match stretch.kind {
            Kind::Plain => {
                let beside = names_beside(&named, at);
                stretches.extend(words(stretch.written, before, beside, values));
            }
            Kind::Word | Kind::Joined | Kind::Name => stretches.push(*stretch),
        }
    }
    if stretches.iter().all(|stretch| stretch.kind == Kind::Plain) {
        return vec![whole];
    }
    stretches
}

/// Returns whether a name is directly before a stretch, and directly after it.
pub(super) fn names_beside(stretches: &[Stretch<'_>], at: usize) -> (bool, bool) {
    let is_name = |at: Option<usize>| {
        let stretch = at.and_then(|at| stretches.get(at));
        stretch.is_some_and(|stretch| stretch.kind == Kind::Name)
    };
    (is_name(at.checked_sub(1)), is_name(at.checked_add(1)))
}

/// Returns the text between the names of a part, and the names.
pub(super) fn named(written: &str) -> Vec<Stretch<'_>> {
    let mut stretches = Vec::new();
    for text in written.split_inclusive('}') {
        let name_at = text.rfind('{').filter(|at| {
            let name = text.get(at.saturating_add(1)..).and_then(|name| name.strip_suffix('}'));
            name.is_some_and(|name| !name.is_empty())
        });
        let at = name_at.unwrap_or(text.len());
        let (plain, name) = text.split_at_checked(at).unwrap_or((text, ""));
        let both = [(plain, Kind::Plain), (name, Kind::Name)].into_iter();
        let both = both.filter(|(written, _)| !written.is_empty());
        stretches.extend(both.map(|(written, kind)| Stretch { written, kind }));
    }
    stretches
}

/// Returns the words of a text that equal values, and the text between them. `beside` says whether a
/// name is before and after the text.
fn words<'a>(
    written: &'a str,
    before: Before<'_>,
    beside: (bool, bool),
    values: &KnownValues,
) -> Vec<Stretch<'a>> {
    let decoded = Decoded::of(written, before);
    let (follows_name, precedes_name) = beside;
    let plain = Plain { text: &decoded.text, before, follows_name, precedes_name };
    let found = values.values().flat_map(|value| plain.places_of(value));
    let mut found: Vec<Range<usize>> = found.collect();
    found.sort_by_key(|range| (Reverse(range.len()), range.start));
    let mut chosen: Vec<Range<usize>> = Vec::new();
    for range in found {
        let is_apart = |other: &Range<usize>| range.end <= other.start || other.end <= range.start;
        // With one more than is allowed, the address has too many parts.
        if chosen.len() <= MAX_ADDRESS_PARTS && chosen.iter().all(is_apart) {
            chosen.push(range);
        }
    }
    chosen.sort_by_key(|range| range.start);
    let mut stretches = Vec::new();
    let mut add = |written: Option<&'a str>, kind: Kind| {
        let written = written.filter(|written| !written.is_empty());
        stretches.extend(written.map(|written| Stretch { written, kind }));
    };
    let mut end = 0;
    for range in chosen {
        let Some(place) = decoded.written(&range) else { continue };
        let kind = if plain.is_joined(&range) { Kind::Joined } else { Kind::Word };
        add(written.get(end..place.start), Kind::Plain);
        end = place.end;
        add(written.get(place), kind);
    }
    add(written.get(end..), Kind::Plain);
    stretches
}

impl Plain<'_> {
    /// Returns where a value stands as a word: with no letter and no digit beside it. A number is no
    /// word if it is that of a page of a list, or part of a date, a time or a version.
    pub(super) fn places_of(&self, value: &str) -> Vec<Range<usize>> {
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        if value.is_empty() || (!is_number && value.chars().count() < MIN_WORD_CHARS) {
            return vec![];
        }
        let all = self.text.match_indices(value);
        let all = all.map(|(start, _)| start..start.saturating_add(value.len()));
        let words = all.filter(|range| self.is_word(range));
        words.filter(|range| !is_number || self.is_identifying(range)).collect()
    }

    /// Returns whether a number is neither that of a page of a list, nor part of a date, a time or a
    /// version.
    pub(super) fn is_identifying(&self, range: &Range<usize>) -> bool {
        let (before, after) = self.beside(range);
        let number = self.text.get(range.clone()).unwrap_or_default();
        !is_in_date(before, number, after) && !self.before.is_page_number_after(before, number)
    }

    fn is_word(&self, range: &Range<usize>) -> bool {
        let (before, after) = self.beside(range);
        let begins = if before.is_empty() {
            !self.follows_name
        } else {
            !before.ends_with(char::is_alphanumeric) || ends_with_escape(before)
        };
        let ends = if after.is_empty() {
            !self.precedes_name
        } else {
            !after.starts_with(char::is_alphanumeric)
        };
        begins && ends
    }

    fn is_joined(&self, range: &Range<usize>) -> bool {
        let joins = |c: char| matches!(c, '-' | '_' | '.' | '@');
        let (before, after) = self.beside(range);
        let before = before.strip_suffix(joins);
        let after = after.strip_prefix(joins);
        before.is_some_and(|text| text.ends_with(char::is_alphanumeric))
            || after.is_some_and(|text| text.starts_with(char::is_alphanumeric))
    }

    fn beside(&self, range: &Range<usize>) -> (&str, &str) {
        let before = self.text.get(..range.start).unwrap_or_default();
        (before, self.text.get(range.end..).unwrap_or_default())
    }
}
