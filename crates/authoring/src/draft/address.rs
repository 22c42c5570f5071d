//! The parts of the addresses of pages and requests, and the values that stand in their place.

use serde::{Deserialize, Serialize};
use url::form_urlencoded;

use super::{DraftError, FieldSource, KnownValues};

/// The parts that an address has at most.
const MAX_ADDRESS_PARTS: usize = 64;
/// From this length on, hexadecimal digits alone are taken for an identifier.
const MIN_HEX_DIGITS: usize = 16;
/// From this length on, letters with digits are taken for an identifier.
const MIN_MIXED_CHARS: usize = 8;
/// The lengths of the groups of a UUID (RFC 9562, section 4).
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
/// Numbers of parameters with these names say which rows of a list are wanted.
const PAGE_PARAMETERS: &[&str] = &[
    "count", "limit", "max", "offset", "page", "pagesize", "perpage", "rows", "size", "skip",
    "start", "top",
];
const MAX_PAGE_DIGITS: usize = 4;
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

/// A part of an address: a whole segment of its path, or the whole value of a parameter; also those of
/// an address after `#`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddressPart {
    /// The decoded text; `None` for a value that was not read yet.
    text: Option<String>,
    /// The part with what is before it, such as `users/1` or `id=1`.
    pub(crate) place: String,
    /// The names of the values that can stand here.
    values: Vec<String>,
    /// `None` if the author has to choose.
    choice: Option<PartChoice>,
    /// Whether its text may be that of the author's account.
    may_be_own: bool,
    /// Whether its text says which rows of a list are wanted, which no value does.
    #[serde(skip)]
    is_page_number: bool,
}

impl AddressPart {
    /// Returns whether it stays as it is although it may be that of the author's account.
    pub(crate) fn stays_own(&self) -> bool {
        self.may_be_own && self.choice == Some(PartChoice::AsItIs)
    }

    /// Returns what stands at its place in an address in which it is `written` so far.
    fn with_choice(
        &self,
        written: &str,
        choice: Option<&PartChoice>,
    ) -> Result<String, DraftError> {
        match choice {
            None => Err(DraftError::PartUndecided(self.place.clone())),
            Some(PartChoice::Value(name)) if self.values.contains(name) => {
                Ok(format!("{{{name}}}"))
            }
            Some(PartChoice::Value(name)) => {
                Err(DraftError::OtherValue { name: name.clone(), place: self.place.clone() })
            }
            Some(PartChoice::AsItIs) if whole_name(written).is_none() => Ok(written.to_owned()),
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
/// that were `read`, those that are `offered` may take the place of parts that equal them.
///
/// # Errors
/// It has more than 64 parts.
pub(crate) fn address_parts(
    url: &str,
    offered: &KnownValues,
    read: &KnownValues,
) -> Result<Vec<AddressPart>, DraftError> {
    let mut parts = Vec::new();
    for piece in pieces(url) {
        let Piece::Part { text, before } = piece else { continue };
        if parts.len() >= MAX_ADDRESS_PARTS {
            return Err(DraftError::TooManyParts);
        }
        parts.push(part(text, before, offered, read));
    }
    Ok(parts)
}

/// Returns the parts of an address that is new to a definition. A value takes the place of a part that
/// equals it, unless another value equals the part or the value another part: then only the author
/// knows which is meant. The number of a page of a list stays as it is, whatever it equals.
///
/// # Errors
/// It has more than 64 parts.
pub(crate) fn proposed_parts(
    url: &str,
    offered: &KnownValues,
    read: &KnownValues,
) -> Result<Vec<AddressPart>, DraftError> {
    let mut parts = address_parts(url, offered, read)?;
    let others = parts.iter().filter(|part| !part.is_page_number);
    let uses: Vec<_> = others.flat_map(|part| part.values.clone()).collect();
    let is_once = |name: &String| uses.iter().filter(|other| *other == name).count() == 1;
    let is_open =
        |part: &&mut AddressPart| part.choice == Some(PartChoice::AsItIs) && !part.is_page_number;
    for part in parts.iter_mut().filter(is_open) {
        part.choice = match part.values.as_slice() {
            [] => Some(PartChoice::AsItIs),
            [name] if is_once(name) => Some(PartChoice::Value(name.clone())),
            _ => None,
        };
    }
    Ok(parts)
}

/// Returns whether an address of a definition can be the one that is `shown`: each part is the same, or
/// a value that equals it or is not known. Numbers of pages may differ.
pub(super) fn can_be(own: &str, shown: &str, known: &KnownValues) -> bool {
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
    let decoded = |text: &str| decoded(text, before);
    if let Some(value) = whole_name(own).and_then(|name| known.get(name)) {
        return *value == decoded(shown);
    }
    match own.split_once('{') {
        // What stands for a value that is not known, or for less than the whole part.
        Some((start, rest)) => {
            let end = rest.rsplit_once('}').map_or("", |(_, end)| end);
            shown.strip_prefix(start).is_some_and(|rest| rest.ends_with(end))
        }
        None => {
            decoded(own) == decoded(shown)
                || (before.is_page_number(own) && before.is_page_number(shown))
        }
    }
}

/// Returns an address with the names of known values in place of the parts that equal them.
///
/// # Errors
/// The author has to choose what stands at the place of a part, or there are more than 64.
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
            Piece::Part { text, .. } => {
                let (part, choice) = chosen.next().ok_or(DraftError::AddressChanged)?;
                address.push_str(&part.with_choice(text, choice.as_ref())?);
            }
        }
    }
    Ok(address)
}

fn part(text: &str, before: Before<'_>, offered: &KnownValues, read: &KnownValues) -> AddressPart {
    let place = before.with(text);
    let Some(name) = whole_name(text) else {
        // Braces within a part are those of a name that stands for less than the whole part.
        let has_name = text.contains('{');
        let text = decoded(text, before);
        return AddressPart {
            values: if has_name { vec![] } else { names_of(&text, offered) },
            may_be_own: !has_name && may_be_own(&text, before, read),
            is_page_number: before.is_page_number(&text),
            text: Some(text),
            place,
            choice: Some(PartChoice::AsItIs),
        };
    };
    let text = read.get(name).cloned();
    let mut values = text.as_ref().map(|text| names_of(text, offered)).unwrap_or_default();
    if !values.iter().any(|other| other == name) {
        values.push(name.to_owned());
    }
    AddressPart {
        may_be_own: text.is_some(),
        is_page_number: false,
        text,
        place,
        values,
        choice: Some(PartChoice::Value(name.to_owned())),
    }
}

fn names_of(text: &str, offered: &KnownValues) -> Vec<String> {
    let equal = offered.iter().filter(|(_, value)| value.as_str() == text);
    equal.map(|(name, _)| name.clone()).collect()
}

/// Returns whether a text may tell one account from another: it is an identifier by its form, or equals
/// what was read of the author's account.
fn may_be_own(text: &str, before: Before<'_>, read: &KnownValues) -> bool {
    if before.is_page_number(text) {
        return false;
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mixed = text.len() >= MIN_MIXED_CHARS
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = text.split('-').map(str::len).eq(UUID_GROUPS) && text.split('-').all(is_hex);
    let is_mail =
        text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    is_number
        || is_mixed
        || (text.len() >= MIN_HEX_DIGITS && is_hex(text))
        || is_uuid
        || is_mail
        || read.values().any(|value| value == text)
}

/// What is before a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before<'a> {
    /// The segment of the path; empty at its beginning.
    Segment(&'a str),
    /// The name of the parameter; empty for a parameter without a name.
    Parameter(&'a str),
}

impl Before<'_> {
    fn with(self, text: &str) -> String {
        match self {
            Self::Segment("") | Self::Parameter("") => text.to_owned(),
            Self::Segment(segment) => format!("{segment}/{text}"),
            Self::Parameter(name) => format!("{name}={text}"),
        }
    }

    /// Returns whether a text says which rows of a list are wanted.
    fn is_page_number(self, text: &str) -> bool {
        let Self::Parameter(name) = self else { return false };
        if text.len() > MAX_PAGE_DIGITS || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let letters = name.chars().filter(char::is_ascii_alphabetic);
        let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        PAGE_PARAMETERS.contains(&letters.as_str())
    }
}

/// A piece of an address. All pieces one after the other are the address.
enum Piece<'a> {
    Part { text: &'a str, before: Before<'a> },
    Between(&'a str),
}

fn pieces(url: &str) -> Vec<Piece<'_>> {
    let (origin, rest) = url.split_at_checked(origin_length(url)).unwrap_or((url, ""));
    let (rest, fragment) = split_before(rest, '#');
    let mut pieces = vec![Piece::Between(origin)];
    add_pieces(rest, &mut pieces);
    // The address of a page within a single-page application, such as `#/users/1`. Other fragments are
    // places in the page.
    let start = ["#!/", "#/"].into_iter().find(|start| fragment.starts_with(start));
    match start.and_then(|start| fragment.split_at_checked(start.len())) {
        Some((start, rest)) => {
            pieces.push(Piece::Between(start));
            add_pieces(rest, &mut pieces);
        }
        None => pieces.push(Piece::Between(fragment)),
    }
    pieces
}

/// Adds the pieces of a path and the query that follows it.
fn add_pieces<'a>(text: &'a str, pieces: &mut Vec<Piece<'a>>) {
    let (path, query) = split_before(text, '?');
    let mut segment_before = "";
    for segment in path.split_inclusive('/') {
        let (text, end) = without_end(segment, '/');
        pieces.push(Piece::of(text, Before::Segment(segment_before)));
        pieces.push(Piece::Between(end));
        segment_before = text;
    }
    let start = usize::from(!query.is_empty());
    let (start, query) = query.split_at_checked(start).unwrap_or((query, ""));
    pieces.push(Piece::Between(start));
    for parameter in query.split_inclusive('&') {
        let (parameter, end) = without_end(parameter, '&');
        let length = parameter.find('=').map_or(0, |at| at.saturating_add(1));
        let (name, text) = parameter.split_at_checked(length).unwrap_or(("", parameter));
        pieces.push(Piece::Between(name));
        let before = Before::Parameter(name.trim_end_matches('='));
        pieces.push(Piece::of(text, before));
        pieces.push(Piece::Between(end));
    }
}

impl<'a> Piece<'a> {
    fn of(text: &'a str, before: Before<'a>) -> Self {
        if text.is_empty() {
            return Self::Between(text);
        }
        Self::Part { text, before }
    }
}

/// Returns the length of the scheme and the host, which are never replaced.
fn origin_length(url: &str) -> usize {
    let is_scheme = |at: &usize| {
        url.get(..*at).is_some_and(|scheme| scheme.bytes().all(|b| b.is_ascii_alphabetic()))
    };
    let start = url.find("://").filter(is_scheme).map_or(0, |at| at.saturating_add(3));
    let rest = url.get(start..).unwrap_or_default();
    rest.find(['/', '?', '#']).map_or(url.len(), |at| at.saturating_add(start))
}

fn split_before(text: &str, separator: char) -> (&str, &str) {
    let at = text.find(separator).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, ""))
}

fn without_end(text: &str, end: char) -> (&str, &str) {
    let length = text.strip_suffix(end).map_or(text.len(), str::len);
    text.split_at_checked(length).unwrap_or((text, ""))
}

/// Returns the name if a text is one in braces and nothing else.
fn whole_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (!name.is_empty() && !name.contains(['{', '}'])).then_some(name)
}

fn decoded(text: &str, before: Before<'_>) -> String {
    let text = text.replace('&', "%26");
    let text = match before {
        // A plus sign is a space in a query alone.
        Before::Segment(_) => text.replace('+', "%2B"),
        Before::Parameter(_) => text,
    };
    let pair = format!("={text}");
    let value = form_urlencoded::parse(pair.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERSHIP: &str = "https://shop.example/api/organizations/1/memberships/1?page=1";

    fn values(pairs: &[(&str, &str)]) -> KnownValues {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn value(name: &str) -> PartChoice {
        PartChoice::Value(name.to_owned())
    }

    #[test]
    fn a_value_takes_the_place_of_a_whole_part() {
        let known = values(&[("user", "ada l"), ("id", "5"), ("mail", "a+b@c.example")]);
        for (url, expected) in [
            ("https://a.test/users/5", "https://a.test/users/{id}"),
            ("https://a.test/users/5/", "https://a.test/users/{id}/"),
            ("https://a.test/x?a=5&5=b", "https://a.test/x?a={id}&5=b"),
            ("https://a.test/x?5", "https://a.test/x?{id}"),
            ("https://a.test/x?ids=4,5&next=/users/5", "https://a.test/x?ids=4,5&next=/users/5"),
            ("https://a.test/ada%20l?q=z", "https://a.test/{user}?q=z"),
            ("https://a.test/x?u=ada+l", "https://a.test/x?u={user}"),
            ("https://a.test/a+b@c.example", "https://a.test/{mail}"),
            ("https://a.test/x?m=a%2Bb%40c.example", "https://a.test/x?m={mail}"),
            ("https://a.test/users/55", "https://a.test/users/55"),
            ("https://5", "https://5"),
            ("https://a.test", "https://a.test"),
            ("https://a.test/app#/users/5?tab=6", "https://a.test/app#/users/{id}?tab=6"),
            ("https://a.test/app#5", "https://a.test/app#5"),
            (
                "{customOrigin}/users/5?to=https://a.test/x",
                "{customOrigin}/users/{id}?to=https://a.test/x",
            ),
            ("{customUrl}", "{customUrl}"),
        ] {
            assert_eq!(with_proposals(url, &known).unwrap(), expected);
            let pieces = pieces(url).into_iter().map(|piece| match piece {
                Piece::Part { text, .. } | Piece::Between(text) => text,
            });
            assert_eq!(pieces.collect::<String>(), url);
        }
    }

    #[test]
    fn nothing_is_assumed_where_more_than_one_choice_is_possible() {
        let both = values(&[("organization", "1"), ("user", "1")]);
        let one = values(&[("user", "1")]);
        for (url, known) in [
            (MEMBERSHIP, &both),
            (MEMBERSHIP, &one),
            ("https://a.test/users/1", &both),
            ("https://a.test/users/1?other=1", &one),
        ] {
            let error = with_proposals(url, known).unwrap_err();
            assert!(matches!(error, DraftError::PartUndecided(_)), "{url}: {error}");
        }
        let error = with_proposals("https://a.test/users/1", &both).unwrap_err();
        assert!(error.to_string().contains("`users/1`"), "{error}");
        let as_it_is = || Some(PartChoice::AsItIs);
        let parts = vec![
            as_it_is(),
            as_it_is(),
            Some(value("organization")),
            as_it_is(),
            Some(value("user")),
            as_it_is(),
        ];
        let choice = AddressChoice { url: MEMBERSHIP.to_owned(), parts };
        assert_eq!(
            choice.apply(MEMBERSHIP, &both, &both).unwrap(),
            "https://shop.example/api/organizations/{organization}/memberships/{user}?page=1"
        );
        let changed = choice.apply("https://shop.example/api", &both, &both);
        assert_eq!(changed, Err(DraftError::AddressChanged));
    }

    #[test]
    fn only_a_value_that_equals_a_part_is_chosen_for_it() {
        let known = values(&[("user", "1"), ("other", "2")]);
        let url = "https://a.test/users/1";
        let apply = |parts: Vec<Option<PartChoice>>| {
            AddressChoice { url: url.to_owned(), parts }.apply(url, &known, &known)
        };
        let literal = || Some(PartChoice::AsItIs);
        assert_eq!(
            apply(vec![literal(), Some(value("user"))]).unwrap(),
            "https://a.test/users/{user}"
        );
        assert_eq!(apply(vec![literal(), literal()]).unwrap(), url);
        for wrong in ["other", "none", "user}/{user"] {
            let refused = apply(vec![literal(), Some(value(wrong))]);
            assert!(matches!(refused, Err(DraftError::OtherValue { .. })), "{wrong}");
        }
        let undecided = apply(vec![literal(), None]);
        assert_eq!(undecided, Err(DraftError::PartUndecided("users/1".to_owned())));
        for count in [0, 1, 3, 1000] {
            assert_eq!(apply(vec![literal(); count]), Err(DraftError::AddressChanged));
        }
        let long = format!("https://a.test{}", "/x".repeat(65));
        assert_eq!(with_proposals(&long, &known), Err(DraftError::TooManyParts));
    }

    #[test]
    fn an_address_of_the_definition_is_changed_part_by_part() {
        let offered = values(&[("organization", "1 a")]);
        let read = values(&[("organization", "1 a"), ("user", "1 a")]);
        let url = "https://a.test/orgs/{user}/{unread}/user{user}?page={page}#/users/{user}";
        let parts = address_parts(url, &offered, &read).unwrap();
        let places: Vec<_> = parts.iter().map(|part| part.values.clone()).collect();
        assert_eq!(
            places,
            [
                names(&[]),
                names(&["organization", "user"]),
                names(&["unread"]),
                names(&[]),
                names(&["page"]),
                names(&[]),
                names(&["organization", "user"]),
            ]
        );
        let mut choice = AddressChoice {
            url: url.to_owned(),
            parts: parts.into_iter().map(|part| part.choice).collect(),
        };
        assert_eq!(choice.apply(url, &offered, &read).unwrap(), url);
        choice.parts[1] = Some(value("organization"));
        let changed = choice.apply(url, &offered, &read).unwrap();
        assert_eq!(changed, url.replacen("{user}", "{organization}", 1));
        choice.parts[1] = Some(PartChoice::AsItIs);
        let changed = choice.apply(url, &offered, &read).unwrap();
        assert_eq!(changed, url.replacen("{user}", "1%20a", 1));
        choice.parts[2] = Some(PartChoice::AsItIs);
        let unread = choice.apply(url, &offered, &read);
        assert_eq!(unread, Err(DraftError::PartUnread("{user}/{unread}".to_owned())));
    }

    #[test]
    fn the_number_of_a_page_is_no_value_unless_the_author_says_so() {
        let known = values(&[("user", "1"), ("long", "12345")]);
        for (url, expected) in [
            ("https://a.test/orders?page=1", "https://a.test/orders?page=1"),
            ("https://a.test/users/1?per_page=1", "https://a.test/users/{user}?per_page=1"),
            ("https://a.test/app#/orders?offset=1", "https://a.test/app#/orders?offset=1"),
            ("https://a.test/orders?account=1", "https://a.test/orders?account={user}"),
            ("https://a.test/orders?start=12345", "https://a.test/orders?start={long}"),
        ] {
            assert_eq!(with_proposals(url, &known).unwrap(), expected);
        }
        let url = "https://a.test/orders?page=1";
        let proposed = proposed_parts(url, &known, &known).unwrap();
        assert_eq!(proposed[1].values, names(&["user"]));
        let parts = vec![Some(PartChoice::AsItIs), Some(value("user"))];
        let choice = AddressChoice { url: url.to_owned(), parts };
        let chosen = choice.apply(url, &known, &known).unwrap();
        assert_eq!(chosen, "https://a.test/orders?page={user}");
    }

    #[test]
    fn an_address_of_a_definition_can_be_another_one_in_its_values_alone() {
        let known = values(&[("user", "ada l")]);
        for (own, shown, expected) in [
            ("https://a.test/orders", "https://a.test/orders", true),
            ("https://a.test/orders", "https://a.test/invoices", false),
            ("https://a.test/orders", "https://b.test/orders", false),
            ("https://a.test/orders", "https://a.test/orders/1", false),
            ("https://a.test/orders", "https://a.test/orders?state=open", false),
            ("https://a.test/app#/orders", "https://a.test/app#/invoices", false),
            ("https://a.test/x?state=open", "https://a.test/x?state=closed", false),
            ("https://a.test/x?page=1", "https://a.test/x?page=2", true),
            ("https://a.test/x?page=1", "https://a.test/x?user=1", false),
            ("https://a.test/{user}/orders", "https://a.test/ada%20l/orders", true),
            ("https://a.test/{user}/orders", "https://a.test/bob/orders", false),
            ("https://a.test/{unread}/orders", "https://a.test/bob/orders", true),
            ("https://a.test/user{id}.json", "https://a.test/user5.json", true),
            ("https://a.test/user{id}.json", "https://a.test/order5.json", false),
            ("{customUrl}", "https://a.test/users/5", true),
            ("{customOrigin}/api/orders", "https://a.test/api/orders", true),
            ("{customOrigin}/api/orders", "https://a.test/api/invoices", false),
        ] {
            assert_eq!(can_be(own, shown, &known), expected, "{own} {shown}");
        }
    }

    #[test]
    fn parts_that_may_be_the_accounts_own_are_told() {
        let read = values(&[("name", "ada")]);
        let own = |url: &str| {
            let parts = address_parts(url, &KnownValues::new(), &read).unwrap();
            let own: Vec<_> = parts.into_iter().filter(AddressPart::stays_own).collect();
            own.into_iter().map(|part| part.place).collect::<Vec<_>>().join(" ")
        };
        for (url, expected) in [
            ("https://a.test/api/v1/users/7", "users/7"),
            (
                "https://a.test/u/0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5",
                "u/0197b3a0-5c1e-7c3e-9b0a-4f1de2a3b4c5",
            ),
            ("https://a.test/u/deadbeefdeadbeef", "u/deadbeefdeadbeef"),
            ("https://a.test/u/cus_N1x2abC", "u/cus_N1x2abC"),
            ("https://a.test/x?m=a%40b.example", "m=a%40b.example"),
            ("https://a.test/ada/settings", "ada"),
            ("https://a.test/x?account=25&limit=25&@pagesize=10&per_page=50&page=1", "account=25"),
            ("https://a.test/x?page=12345", "page=12345"),
            ("https://a.test/app#/users/7", "users/7"),
            ("https://a.test/app#7", ""),
            ("https://a.test/api/v2/oauth2/settings?sort=number&tab=profile", ""),
            ("https://a.test/users/{name}/user{name}", ""),
            ("{customOrigin}/api/me", ""),
        ] {
            assert_eq!(own(url), expected, "{url}");
        }
    }

    #[test]
    fn braces_of_a_site_are_no_names() {
        let url = without_braces("https://a.test/x?filter={user}");
        let known = values(&[("user", "1")]);
        assert_eq!(with_proposals(&url, &known).unwrap(), "https://a.test/x?filter=%7Buser%7D");
    }
}
