//! Selectors of links by a parameter of the query of their address.

use domain::workflow::{FRAME_SEPARATOR, PageTree, Select};

use crate::{
    draft::{KnownValues, is_page_name},
    selectors::{
        MAX_PROPOSALS, SelectorProposal, address_part, has_known_value, identifier, is_positional,
        is_steady, mark_own, propose_selectors, root_around, string, words_in,
    },
};

/// Parameters of an address that are looked at, and those that are proposed.
const MAX_PARAMETERS: usize = 10;
const MAX_FOUND: usize = 2;
/// The length of a name or a value.
const MAX_PART_BYTES: usize = 40;
/// The digits of a number that is hardly that of an account or a document.
const MAX_DIGITS: usize = 2;
/// Names of parameters that say which part of a list is wanted, without their signs, beside those of
/// [`is_page_name`].
const PAGES: &[&str] = &["after", "before", "cursor", "from", "p", "pagina"];
/// Words of names of parameters whose values are somebody's own, those of a session, or dates. Others that end in
/// `id` are so, too.
const OWN: &[&str] = &[
    "account",
    "auth",
    "author",
    "code",
    "csrf",
    "customer",
    "date",
    "day",
    "email",
    "end",
    "firstname",
    "hash",
    "key",
    "lastname",
    "login",
    "mail",
    "member",
    "month",
    "name",
    "nickname",
    "nonce",
    "otp",
    "owner",
    "password",
    "period",
    "person",
    "phone",
    "profile",
    "q",
    "quarter",
    "query",
    "ref",
    "referrer",
    "search",
    "secret",
    "sess",
    "session",
    "sid",
    "sig",
    "signature",
    "since",
    "slug",
    "start",
    "state",
    "surname",
    "time",
    "timestamp",
    "token",
    "ts",
    "uid",
    "until",
    "user",
    "username",
    "week",
    "xsrf",
    "year",
];
/// Words of names of parameters whose numbers are those of records, or of places in a list.
const RECORDS: &[&str] = &[
    "address", "bill", "booking", "card", "case", "contract", "doc", "document", "entry", "file",
    "index", "invoice", "item", "line", "message", "no", "nr", "num", "number", "order", "pos",
    "position", "product", "record", "row", "ticket",
];

/// Returns selectors whose first match is the element at `node`, the best one first, as
/// [`propose_selectors`] does, with those by a parameter of its address that match it alone. `known` are
/// the values of the author's account: a parameter with one is not proposed, and other selectors with one
/// are marked and come last.
pub(crate) fn propose_places(
    page: &PageTree,
    node: usize,
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<SelectorProposal> {
    let mut proposals = propose_selectors(page, node, select);
    let found = by_parameter(page, node, known, select);
    let prefix = proposals.first().map(|first| frame_of(&first.selector).to_owned());
    if let Some(prefix) = prefix.filter(|_| !found.is_empty()) {
        let found = found.into_iter().map(|selector| SelectorProposal {
            selector: format!("{prefix}{selector}"),
            matches: 1,
            hashed: false,
            positional: is_positional(&prefix),
            may_be_own: false,
            has_words: false,
        });
        let is_later = |proposal: &SelectorProposal| {
            proposal.matches != 1 || proposal.hashed || proposal.positional
        };
        let at = proposals.iter().position(is_later).unwrap_or(proposals.len());
        proposals.splice(at..at, found);
        proposals.truncate(MAX_PROPOSALS);
    }
    mark_own(&mut proposals, known);
    proposals
}

/// Returns the beginning of a selector that leads to the frame or shadow root of its element; empty for the
/// document.
fn frame_of(selector: &str) -> &str {
    let end = selector.rfind(FRAME_SEPARATOR).map(|at| at.saturating_add(FRAME_SEPARATOR.len()));
    // A space follows it.
    end.and_then(|end| selector.get(..=end)).unwrap_or_default()
}

/// Returns selectors in the root of a link that match it alone.
fn by_parameter(
    page: &PageTree,
    node: usize,
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<String> {
    let link = page.nodes.get(node).zip(root_around(page, node));
    let Some((link, root)) = link else { return vec![] };
    let address = link.tag.as_deref().zip(link.attributes.get("href"));
    let Some((tag, address)) = address else { return vec![] };
    let tag = identifier(tag);
    let address = address.trim_end();
    let (before_fragment, _) = address.split_once('#').unwrap_or((address, ""));
    let Some((_, query)) = before_fragment.split_once('?') else { return vec![] };
    let is_own = |value: &str| {
        let mut values = known.values();
        values.any(|own| own.trim().eq_ignore_ascii_case(value))
    };
    let ends = query.match_indices('&').map(|_| "&");
    let ends = ends.chain([if before_fragment == address { "" } else { "#" }]);
    let parameters = query.split('&').zip(ends).take(MAX_PARAMETERS).filter(|(parameter, _)| {
        let pair = parameter.split_once('=');
        pair.is_some_and(|(name, value)| is_general(name, value) && !is_own(value))
    });
    let found = parameters.filter_map(|(parameter, end)| {
        let contains = format!("[href*={}]", string(parameter));
        let ends = format!("[href$={}]", string(parameter));
        let with_end = || format!("[href*={}]", string(&format!("{parameter}{end}")));
        let exact = if end.is_empty() { ends } else { with_end() };
        // Other accounts may have links with longer numbers that begin with it.
        let has_number = parameter.ends_with(|c: char| c.is_ascii_digit());
        let own = if has_number { &exact } else { &contains };
        let path = address_part(address).map(|path| format!("[href*={}]{own}", string(path)));
        let is_exact = has_number || end.is_empty();
        let candidates =
            [(!has_number).then(|| contains.clone()), is_exact.then(|| exact.clone()), path];
        let candidates = candidates.into_iter().flatten().map(|own| format!("{tag}{own}"));
        let is_only = |selector: &String| {
            !has_known_value(selector, known)
                && !selector.contains(FRAME_SEPARATOR)
                && select(page, root, selector).as_slice() == [node]
        };
        candidates.into_iter().find(is_only)
    });
    found.take(MAX_FOUND).collect()
}

/// Returns whether a parameter seems to be the same for every account: neither its name nor its value is
/// about somebody, a record, a date or a part of a list. What is encoded is not.
fn is_general(name: &str, value: &str) -> bool {
    let is_plain = |text: &str| {
        (1..=MAX_PART_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let letters = name.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let words = words_in(name);
    let has_word = |known: &[&str]| {
        known.contains(&letters.as_str()) || words.iter().any(|word| known.contains(&word.as_str()))
    };
    let has_digit = value.contains(|c: char| c.is_ascii_digit());
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let is_steady = if is_number { value.len() <= MAX_DIGITS } else { is_steady(value) };
    is_plain(name)
        && is_plain(value)
        && !is_page_name(name)
        && !PAGES.contains(&letters.as_str())
        && !has_word(OWN)
        && (!has_digit || !has_word(RECORDS))
        && !letters.ends_with("id")
        && is_steady
}
