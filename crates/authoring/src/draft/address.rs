//! The parts of the addresses of pages and requests, and the values that stand in their place.

mod own;
mod pieces;
#[cfg(test)]
mod tests;
mod text;
mod words;

use serde::{Deserialize, Serialize};

pub(crate) use self::pieces::is_page_name;
use self::{
    own::may_be_own,
    pieces::{Before, Piece, origin_length, pieces},
    text::{Decoded, encoded, end_of, start_of},
    words::{Kind, Plain, Stretch, named, names_beside, stretches},
};
use super::{DraftError, FieldSource, KnownValues};

/// The length of an address that a definition can have. A site may have longer ones, in which values are
/// not looked for.
const MAX_ADDRESS_BYTES: usize = 2048;
/// The parts that an address has at most.
const MAX_ADDRESS_PARTS: usize = 64;
/// A place of more characters shows those beside the text of its part alone.
const MAX_PLACE_CHARS: usize = 60;
const MAX_TEXT_CHARS: usize = 36;
const MAX_BESIDE_CHARS: usize = 24;
/// What stands for the address that a session gives, and for its origin.
const CUSTOM_URL: &str = "{customUrl}";
const CUSTOM_ORIGIN: &str = "{customOrigin}";

/// What stands at the place of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartChoice {
    /// The part itself, which is the same for every account.
    AsItIs,
    /// The value with this name.
    Value(String),
}

/// What an author has chosen for the parts of an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AddressChoice {
    /// The address that was shown.
    url: String,
    /// The choice for each part, in their order; `None` where there is none yet.
    parts: Vec<Option<PartChoice>>,
}

impl AddressChoice {
    /// Returns an address with what was chosen for its parts. `offered` are the values that may be
    /// chosen, and `read` are all that were read.
    ///
    /// # Errors
    /// The choice is for another address, it lacks a part, or a value is chosen that does not equal its
    /// part.
    pub(super) fn apply(
        &self,
        url: &str,
        offered: &KnownValues,
        read: &KnownValues,
    ) -> Result<String, DraftError> {
        if self.url != url {
            return Err(DraftError::AddressChanged);
        }
        with_choices(url, &self.parts, offered, read)
    }
}

impl FieldSource {
    /// Returns the address of the source's page, or of its request.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Page { url, .. } | Self::Request { url, .. } => url,
            Self::Response { page_url, .. } => page_url,
        }
    }

    /// Returns the source with what was chosen for the parts of its address.
    ///
    /// # Errors
    /// As [`AddressChoice::apply`].
    pub(crate) fn with_choice(
        mut self,
        choice: &AddressChoice,
        known: &KnownValues,
    ) -> Result<Self, DraftError> {
        let chosen = choice.apply(self.url(), known, known)?;
        match &mut self {
            Self::Page { url, .. } | Self::Request { url, .. } => *url = chosen,
            Self::Response { page_url, .. } => *page_url = chosen,
        }
        Ok(self)
    }
}

/// A part of an address: a segment of its path, or the value of a parameter; also those of an address
/// after `#`. Where a word within one equals a value, or the name of a value stands there, each such
/// word and name is a part in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddressPart {
    /// The decoded text; `None` for a value that was not read yet.
    text: Option<String>,
    /// The text with what is beside it, such as `…/users/1` or `id=1`: at most about 120 characters.
    pub(crate) place: String,
    /// What the place has before the text, and after it.
    before: String,
    after: String,
    /// The names of the values that can stand here.
    values: Vec<String>,
    /// `None` if the author has to choose.
    choice: Option<PartChoice>,
    /// Whether its text may be that of the author's account.
    may_be_own: bool,
    /// Whether that is true of what is beside the words of the same segment or parameter. Only the
    /// first of its words says so.
    rest_may_be_own: bool,
    #[serde(skip)]
    proposal: Proposal,
}

/// What is proposed for a part that values equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proposal {
    /// The value, if only one can be meant.
    Value,
    /// No value, since the text says which rows of a list are wanted.
    AsItIs,
    /// Nothing, since the text may be less than the whole of an identifier.
    Nothing,
}

impl AddressPart {
    /// Returns whether text stays here as it is although it may be that of the author's account.
    pub(crate) fn stays_own(&self) -> bool {
        self.rest_may_be_own || (self.may_be_own && self.choice == Some(PartChoice::AsItIs))
    }

    /// Returns what stands at its place in an address in which it is `written` so far.
    fn with_choice(
        &self,
        written: Stretch<'_>,
        choice: Option<&PartChoice>,
    ) -> Result<String, DraftError> {
        match choice {
            None => Err(DraftError::PartUndecided(self.place.clone())),
            Some(PartChoice::Value(name)) if self.values.contains(name) => {
                Ok(format!("{{{name}}}"))
            }
            Some(PartChoice::Value(name)) => {
                let text =
                    start_of(self.text.as_deref().unwrap_or(written.written), MAX_TEXT_CHARS);
                Err(DraftError::OtherValue { name: name.clone(), text, place: self.place.clone() })
            }
            Some(PartChoice::AsItIs) if written.kind != Kind::Name => {
                Ok(written.written.to_owned())
            }
            Some(PartChoice::AsItIs) => {
                let text = self.text.as_deref().map(encoded);
                text.ok_or_else(|| DraftError::PartUnread(self.place.clone()))
            }
        }
    }
}

/// Returns the address of a page or a response as a definition has it, in which braces are those of
/// names alone.
pub(crate) fn without_braces(url: &str) -> String {
    url.replace('{', "%7B").replace('}', "%7D")
}

/// Returns the parts of an address as the definition has it, with what stands there now. Of the values
/// that were `read`, those that are `offered` may take the place of parts, and of words within them,
/// that equal them. A word has no letter and no digit beside it, and at least three characters unless
/// it is a number. The number of a page, and numbers in dates, times and versions are no words.
///
/// # Errors
/// It has more than 64 parts, or more than 2048 bytes.
pub(crate) fn address_parts(
    url: &str,
    offered: &KnownValues,
    read: &KnownValues,
) -> Result<Vec<AddressPart>, DraftError> {
    if url.len() > MAX_ADDRESS_BYTES {
        return Err(DraftError::AddressTooLong);
    }
    let mut parts = Vec::new();
    for piece in pieces(url) {
        let Piece::Part { text, before } = piece else { continue };
        parts.extend(parts_of(&stretches(text, before, offered), before, offered, read));
        if parts.len() > MAX_ADDRESS_PARTS {
            return Err(DraftError::TooManyParts);
        }
    }
    Ok(parts)
}

/// Returns the parts of an address that is new to a definition. A value takes the place of a part that
/// equals it, unless another value equals the part or the value another part, or the part is a word that
/// `-`, `_`, `.` or `@` joins to others: then only the author knows what is meant. The number of a page
/// of a list stays as it is, whatever it equals.
///
/// # Errors
/// As [`address_parts`].
pub(crate) fn proposed_parts(
    url: &str,
    offered: &KnownValues,
    read: &KnownValues,
) -> Result<Vec<AddressPart>, DraftError> {
    proposed_with_fields(url, offered, &KnownValues::new(), read)
}

/// Returns the parts of an address as [`proposed_parts`], in which `fields` are offered as well. Only the
/// author knows whether a part that equals a field, and no value, is that of each account: a field was not
/// added for addresses, and may equal a part by chance.
///
/// # Errors
/// As [`address_parts`].
pub(crate) fn proposed_with_fields(
    url: &str,
    values: &KnownValues,
    fields: &KnownValues,
    read: &KnownValues,
) -> Result<Vec<AddressPart>, DraftError> {
    let mut offered = values.clone();
    offered.extend(fields.clone());
    let mut parts = address_parts(url, &offered, read)?;
    let of_values = |part: &AddressPart| -> Vec<String> {
        part.values.iter().filter(|name| values.contains_key(*name)).cloned().collect()
    };
    let others = parts.iter().filter(|part| part.proposal != Proposal::AsItIs);
    let uses: Vec<_> = others.flat_map(of_values).collect();
    let is_once = |name: &String| uses.iter().filter(|other| *other == name).count() == 1;
    let is_open = |part: &&mut AddressPart| {
        part.choice == Some(PartChoice::AsItIs) && part.proposal != Proposal::AsItIs
    };
    for part in parts.iter_mut().filter(is_open) {
        part.choice = match of_values(part).as_slice() {
            [] if part.values.is_empty() => Some(PartChoice::AsItIs),
            [name] if is_once(name) && part.proposal == Proposal::Value => {
                Some(PartChoice::Value(name.clone()))
            }
            _ => None,
        };
    }
    Ok(parts)
}

/// Returns whether an address of a definition can be the one that is `shown`: each part is the same, or
/// a value that equals it or is not known. Numbers of pages may differ.
pub(crate) fn can_be(own: &str, shown: &str, known: &KnownValues) -> bool {
    if own == CUSTOM_URL {
        return true;
    }
    // The origin of each session.
    let (own, shown) = match own.strip_prefix(CUSTOM_ORIGIN) {
        Some(rest) => (rest, shown.get(origin_length(shown)..).unwrap_or_default()),
        None => (own, shown),
    };
    let (own, shown) = (pieces(own), pieces(shown));
    let mut both = own.iter().zip(&shown);
    own.len() == shown.len()
        && both.all(|pair| match pair {
            (Piece::Between(own), Piece::Between(shown)) => own == shown,
            (Piece::Part { text, before }, Piece::Part { text: shown, .. }) => {
                part_can_be(text, shown, *before, known)
            }
            (Piece::Between(_), Piece::Part { .. }) | (Piece::Part { .. }, Piece::Between(_)) => {
                false
            }
        })
}

fn part_can_be(own: &str, shown: &str, before: Before<'_>, known: &KnownValues) -> bool {
    let decoded = |text: &str| Decoded::of(text, before).text;
    let shown_text = decoded(shown);
    // The text between the values that are not known.
    let mut texts = vec![String::new()];
    for stretch in named(own) {
        let text = match stretch.kind {
            Kind::Name => known.get(name_of(stretch.written)).cloned(),
            Kind::Plain | Kind::Word | Kind::Joined => Some(decoded(stretch.written)),
        };
        match text {
            Some(text) => {
                if let Some(last) = texts.last_mut() {
                    last.push_str(&text);
                }
            }
            None => texts.push(String::new()),
        }
    }
    are_in_order(&texts, &shown_text)
        || (before.is_page_number(own) && before.is_page_number(&shown_text))
}

/// Returns whether a text begins with the first of some texts, ends with the last, and has the others
/// in between in their order.
fn are_in_order(texts: &[String], whole: &str) -> bool {
    let [first, middle @ .., last] = texts else {
        return texts.iter().all(|text| text == whole);
    };
    let rest = whole.strip_prefix(first.as_str());
    let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(last.as_str())) else {
        return false;
    };
    middle.iter().all(|text| {
        let after = rest.split_once(text.as_str()).map(|(_, after)| after);
        rest = after.unwrap_or_default();
        after.is_some()
    })
}

/// Returns an address with the names of known values in place of the parts, and of words within them,
/// that equal them.
///
/// # Errors
/// The author has to choose what stands at the place of a part, or as [`address_parts`].
pub(super) fn with_proposals(url: &str, known: &KnownValues) -> Result<String, DraftError> {
    let parts = proposed_parts(url, known, known)?;
    let choices: Vec<_> = parts.into_iter().map(|part| part.choice).collect();
    with_choices(url, &choices, known, known)
}

fn with_choices(
    url: &str,
    choices: &[Option<PartChoice>],
    offered: &KnownValues,
    read: &KnownValues,
) -> Result<String, DraftError> {
    let parts = address_parts(url, offered, read)?;
    if parts.len() != choices.len() {
        return Err(DraftError::AddressChanged);
    }
    let mut chosen = parts.iter().zip(choices);
    let mut address = String::with_capacity(url.len());
    for piece in pieces(url) {
        match piece {
            Piece::Between(text) => address.push_str(text),
            Piece::Part { text, before } => {
                for stretch in stretches(text, before, offered) {
                    if stretch.kind == Kind::Plain {
                        address.push_str(stretch.written);
                        continue;
                    }
                    let (part, choice) = chosen.next().ok_or(DraftError::AddressChanged)?;
                    address.push_str(&part.with_choice(stretch, choice.as_ref())?);
                }
            }
        }
    }
    Ok(address)
}

/// Returns the parts that the stretches of a segment or of a parameter's value are.
fn parts_of(
    stretches: &[Stretch<'_>],
    before: Before<'_>,
    offered: &KnownValues,
    read: &KnownValues,
) -> Vec<AddressPart> {
    let texts: Vec<_> = stretches.iter().map(|stretch| shown(*stretch, before)).collect();
    let beside = stretches.iter().zip(&texts).enumerate();
    let mut rest_may_be_own = beside.clone().any(|(at, (stretch, text))| {
        let (follows_name, precedes_name) = names_beside(stretches, at);
        let plain = Plain { text, before, follows_name, precedes_name };
        stretch.kind == Kind::Plain && may_be_own(&plain, read)
    });
    let mut parts = Vec::new();
    for (at, (stretch, text)) in beside {
        if stretch.kind == Kind::Plain {
            continue;
        }
        let first: String = texts.iter().take(at).map(String::as_str).collect();
        let last: String = texts.iter().skip(at.saturating_add(1)).map(String::as_str).collect();
        let (first, shown, last) = place(&before.shown(), [first.as_str(), text, last.as_str()]);
        let is_whole = stretches.len() == 1;
        let proposal = match stretch.kind {
            Kind::Joined => Proposal::Nothing,
            Kind::Word if is_whole && before.is_page_number(text) => Proposal::AsItIs,
            Kind::Plain | Kind::Word | Kind::Name => Proposal::Value,
        };
        let plain = Plain { text, before, follows_name: false, precedes_name: false };
        let part = AddressPart {
            text: Some(text.clone()),
            place: format!("{first}{shown}{last}"),
            before: first,
            after: last,
            values: names_of(text, offered),
            choice: Some(PartChoice::AsItIs),
            // A word equals a value.
            may_be_own: !is_whole || may_be_own(&plain, read),
            rest_may_be_own,
            proposal,
        };
        parts.push(match stretch.kind {
            Kind::Name => of_name(part, name_of(stretch.written), offered, read),
            Kind::Plain | Kind::Word | Kind::Joined => part,
        });
        rest_may_be_own = false;
    }
    parts
}

/// Returns a part at which the name of a value stands.
fn of_name(
    part: AddressPart,
    name: &str,
    offered: &KnownValues,
    read: &KnownValues,
) -> AddressPart {
    let text = read.get(name).cloned();
    let mut values = text.as_ref().map(|text| names_of(text, offered)).unwrap_or_default();
    if !values.iter().any(|other| other == name) {
        values.push(name.to_owned());
    }
    let choice = Some(PartChoice::Value(name.to_owned()));
    AddressPart { may_be_own: text.is_some(), text, values, choice, ..part }
}

/// Returns a stretch as it is shown: decoded, apart from names.
fn shown(stretch: Stretch<'_>, before: Before<'_>) -> String {
    match stretch.kind {
        Kind::Name => stretch.written.to_owned(),
        Kind::Plain | Kind::Word | Kind::Joined => Decoded::of(stretch.written, before).text,
    }
}

/// Returns what is shown before a text, the text and what is after it, shortened around the text.
fn place(lead: &str, [before, text, after]: [&str; 3]) -> (String, String, String) {
    let all = [lead, before, text, after];
    if all.iter().map(|text| text.chars().count()).sum::<usize>() <= MAX_PLACE_CHARS {
        return (format!("{lead}{before}"), text.to_owned(), after.to_owned());
    }
    (
        format!("{lead}{}", end_of(before, MAX_BESIDE_CHARS)),
        start_of(text, MAX_TEXT_CHARS),
        start_of(after, MAX_BESIDE_CHARS),
    )
}

fn names_of(text: &str, offered: &KnownValues) -> Vec<String> {
    let equal = offered.iter().filter(|(_, value)| value.as_str() == text);
    equal.map(|(name, _)| name.clone()).collect()
}

/// Returns the name that a text in braces is.
fn name_of(written: &str) -> &str {
    written.trim_start_matches('{').trim_end_matches('}')
}
