//! The parts of an address as it is written: the segments of its path and the values of its parameters.

use super::text::{Decoded, end_of, start_of};

/// Numbers of parameters with these names say which rows of a list are wanted.
const PAGE_PARAMETERS: &[&str] = &[
    "count", "limit", "max", "offset", "page", "pagesize", "perpage", "rows", "size", "skip",
    "start", "top",
];
/// Numbers of parameters with these names do so within one of [`PAGE_OBJECTS`] alone.
const PAGE_MEMBERS: &[&str] = &["index", "no", "num", "number"];
/// Objects whose members are parameters, as in `page[limit]=25` of JSON:API and `pagination.page=1`.
const PAGE_OBJECTS: &[&str] = &["pagination", "paging", "page"];
const MAX_PAGE_DIGITS: usize = 4;
/// The characters of a name or a segment that are shown before a part.
const MAX_LEAD_CHARS: usize = 24;

/// What is before a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before<'a> {
    /// The segment of the path; empty at its beginning.
    Segment(&'a str),
    /// The name of the parameter; empty for a parameter without a name.
    Parameter(&'a str),
}

impl Before<'_> {
    /// Returns what is shown before a part, such as `…/users/` or `id=`: at most about 30 characters.
    pub(super) fn shown(self) -> String {
        let decoded = |text: &str| Decoded::of(text, self).text;
        match self {
            Self::Segment("") => "/".to_owned(),
            Self::Segment(segment) => format!("…/{}/", end_of(&decoded(segment), MAX_LEAD_CHARS)),
            Self::Parameter("") => "?".to_owned(),
            Self::Parameter(name) => format!("{}=", start_of(&decoded(name), MAX_LEAD_CHARS)),
        }
    }

    /// Returns whether the whole text of a part says which rows of a list are wanted.
    pub(super) fn is_page_number(self, text: &str) -> bool {
        let Self::Parameter(name) = self else { return false };
        is_page_digits(text) && is_page_name(name)
    }

    /// Returns whether a number within a part says which rows of a list are wanted: the name that is
    /// nearest before it, in the part or of the parameter, says so.
    pub(super) fn is_page_number_after(self, text: &str, number: &str) -> bool {
        let named = text.trim_end_matches(|c: char| !c.is_alphabetic());
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = match (named, self) {
            ("", Self::Parameter(name)) => name,
            ("", Self::Segment(_)) => "",
            (named, _) => named.rsplit(|c: char| !is_name(c)).next().unwrap_or_default(),
        };
        is_page_digits(number) && is_page_name(name)
    }
}

fn is_page_digits(text: &str) -> bool {
    text.len() <= MAX_PAGE_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a name, which may be encoded, is that of a parameter that says which rows of a list are
/// wanted.
pub(crate) fn is_page_name(name: &str) -> bool {
    let name = Decoded::of(name, Before::Parameter("")).text;
    let letters = name.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let is_parameter = |name: &str| PAGE_PARAMETERS.contains(&name);
    let mut members = PAGE_OBJECTS.iter().filter_map(|object| letters.strip_prefix(object));
    is_parameter(&letters)
        || members.any(|member| is_parameter(member) || PAGE_MEMBERS.contains(&member))
}

/// A piece of an address. All pieces one after the other are the address.
pub(super) enum Piece<'a> {
    Part { text: &'a str, before: Before<'a> },
    Between(&'a str),
}

/// Returns the pieces of an address.
pub(super) fn pieces(url: &str) -> Vec<Piece<'_>> {
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
pub(super) fn origin_length(url: &str) -> usize {
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
