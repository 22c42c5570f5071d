//! Proposals of CSS selectors for an element of a page: those that depend least on how the page is
//! built today and on its language come first.

use cssparser::{serialize_identifier, serialize_string};
use domain::workflow::{FRAME_SEPARATOR, PageNode, PageTree, Select};
use serde::Serialize;

use crate::draft::KnownValues;

/// Selectors that are proposed for an element.
pub(crate) const MAX_PROPOSALS: usize = 6;
/// Ancestors whose selectors are combined with that of the element.
const MAX_ANCHORS: usize = 12;
/// Elements around one whose place is told by its position alone.
const MAX_DEPTH: usize = 200;
/// Frames and shadow roots around an element.
const MAX_ROOTS: usize = 5;
/// Attributes that sites set for their own tests.
const TEST_ATTRIBUTES: &[&str] =
    &["data-testid", "data-test", "data-test-id", "data-qa", "data-cy", "data-automation-id"];
/// Attributes whose values seldom change.
const STEADY_ATTRIBUTES: &[&str] = &["name", "itemprop", "autocomplete", "rel"];
/// Words of addresses and names that sign out.
pub(crate) const EXITS: &[&str] =
    &["logout", "log-out", "log_out", "signout", "sign-out", "sign_out", "logoff"];
/// Classes of states, which come and go.
const STATES: &[&str] = &[
    "active",
    "checked",
    "closed",
    "collapsed",
    "current",
    "disabled",
    "expanded",
    "focus",
    "hidden",
    "hover",
    "invalid",
    "is-active",
    "loading",
    "open",
    "selected",
    "show",
    "valid",
    "visible",
];

/// What the classes of some programs begin with; the rest is letters and digits.
const GENERATORS: &[&str] = &["css-", "svelte-"];
/// The length of the shortest random part of a name.
const MIN_HASH_BYTES: usize = 5;
/// The digits of a number that stands after words in a class, such as that of a width of a screen, and the
/// length of the words.
const MAX_NUMBER_DIGITS: usize = 4;
const MAX_WORDS_BYTES: usize = 43;
const VOWELS: [char; 6] = ['a', 'e', 'i', 'o', 'u', 'y'];
/// Words without vowels that people choose.
const ABBREVIATIONS: &[&str] = &[
    "btn", "css", "ctx", "hdr", "html", "http", "https", "img", "pwd", "src", "svg", "txt", "usr",
    "xhtml", "xml",
];

/// A selector of an element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the warnings are independent of one another")]
pub struct SelectorProposal {
    pub selector: String,
    /// The number of elements that it matches; the proposed one is the first of them.
    pub matches: usize,
    /// Whether it has a class that a program seems to have made up, and that the next version of the
    /// site may not have.
    pub hashed: bool,
    /// Whether it counts elements, so that it matches another one once the page adds an element before.
    pub positional: bool,
    /// Whether it has a word that equals a value of the author's account.
    pub may_be_own: bool,
    /// Whether it has words in the language of the page, which other accounts may have in another one.
    pub has_words: bool,
}

/// How a part of a selector begins that counts elements.
const POSITION: &str = ":nth-of-type(";
/// The parts of a selector that count elements.
const POSITIONS: &[&str] =
    &[":nth-", ":first-child", ":last-child", ":first-of-type", ":last-of-type"];
/// Words of classes after which a number is the place of a cell in its row.
const PLACES: &[&str] = &["cell", "child", "col", "column", "nth", "pos", "position", "td", "th"];
/// The characters that a value has at least to be a word of a selector: shorter ones are in many by
/// chance.
const MIN_WORD_CHARS: usize = 3;

/// Returns selectors whose first match is the element at `node`, the best one first; at least one
/// without a made-up class if the node is an element.
#[must_use]
pub fn propose_selectors(
    page: &PageTree,
    node: usize,
    select: Select<'_>,
) -> Vec<SelectorProposal> {
    propose_within(page, node, select, MAX_ROOTS)
}

fn propose_within(
    page: &PageTree,
    node: usize,
    select: Select<'_>,
    roots: usize,
) -> Vec<SelectorProposal> {
    let Some(root) = root_around(page, node) else { return vec![] };
    let host = page.nodes.get(root).and_then(|root| root.parent);
    let prefix = match host {
        None => String::new(),
        Some(host) => {
            let Some(roots) = roots.checked_sub(1) else { return vec![] };
            // Of several roots of an element, which no browser has, the first is looked into.
            let is_first = page.root_of(host) == Some(root);
            let found = propose_within(page, host, select, roots);
            let first = found.into_iter().find(|proposal| !proposal.hashed);
            let Some(first) = first.filter(|_| is_first) else { return vec![] };
            format!("{} {FRAME_SEPARATOR} ", first.selector)
        }
    };
    let mut found = in_root(page, (root, node), select);
    for proposal in &mut found {
        proposal.selector.insert_str(0, &prefix);
        proposal.positional |= prefix.contains(POSITION);
    }
    found
}

/// Returns the root of the document or shadow tree that a node is in.
pub(crate) fn root_around(page: &PageTree, node: usize) -> Option<usize> {
    let mut at = page.nodes.get(node)?.parent?;
    while !page.is_root(at) {
        at = page.nodes.get(at)?.parent?;
    }
    Some(at)
}

/// Returns selectors of an element in the root `scope`, the best first.
fn in_root(
    page: &PageTree,
    (scope, node): (usize, usize),
    select: Select<'_>,
) -> Vec<SelectorProposal> {
    let matched = |selector: String| {
        // Also in a string, which no selector of a definition can have then.
        if selector.contains(FRAME_SEPARATOR) {
            return None;
        }
        let found = select(page, scope, &selector);
        let matches = found.len();
        // In a name or a string there is no such colon: it is escaped, or no name that somebody chose.
        let positional = is_positional(&selector);
        (found.first() == Some(&node)).then_some(SelectorProposal {
            selector,
            matches,
            hashed: false,
            positional,
            may_be_own: false,
            has_words: false,
        })
    };
    let Some(element) = page.nodes.get(node) else { return vec![] };
    let mut proposals: Vec<_> = local(element).into_iter().filter_map(matched).collect();
    let path = anchored(page, (scope, node), local, select).into_iter().filter_map(matched);
    proposals.extend(path);
    let tag = element.tag.as_deref().map(identifier);
    proposals.extend(tag.and_then(matched));
    let is_unique = proposals.iter().any(|proposal| proposal.matches == 1);
    if proposals.is_empty() {
        proposals.extend(matched(structure(page, (scope, node))));
    }
    if !is_unique {
        let hashed = hashed_selectors(element).into_iter().filter_map(matched);
        proposals.extend(hashed.map(|proposal| SelectorProposal { hashed: true, ..proposal }));
    }
    // Stable: within each group, the order of preference stays.
    proposals.sort_by_key(|proposal| (proposal.matches != 1, proposal.hashed));
    let mut seen = std::collections::BTreeSet::new();
    proposals.retain(|proposal| seen.insert(proposal.selector.clone()));
    proposals.truncate(MAX_PROPOSALS);
    proposals
}

/// Returns selectors of an element below its row, those that are preferred first, and whether each has a
/// class that a program seems to have made up. They may match other elements of the row before it.
/// `cell` is the element itself or one around it in the row.
pub(crate) fn in_row(
    page: &PageTree,
    (row, node): (usize, usize),
    cell: usize,
    select: Select<'_>,
) -> Vec<(String, bool)> {
    let Some(element) = page.nodes.get(node) else { return vec![] };
    let tag = element.tag.as_deref().map(identifier);
    let mut selectors = local_in_row(element);
    selectors.extend(anchored(page, (row, node), local_in_row, select));
    selectors.extend(tag.clone());
    if cell != node {
        let cell = structure(page, (row, cell));
        let own = local(element).into_iter().filter(|own| !own.contains(['[', '#']));
        selectors.extend(own.chain(tag).map(|own| format!("{cell} {own}")));
    }
    selectors.push(structure(page, (row, node)));
    let selectors = selectors.into_iter().map(|selector| (selector, false));
    let hashed = hashed_selectors(element).into_iter().map(|selector| (selector, true));
    let all = selectors.chain(hashed);
    all.filter(|(selector, _)| !selector.contains(FRAME_SEPARATOR)).collect()
}

/// Returns whether a selector counts elements, also one that an author has written, or has a class that numbers
/// them.
pub(crate) fn is_positional(selector: &str) -> bool {
    POSITIONS.iter().any(|position| selector.contains(position))
        || numbered_classes(selector).any(is_place)
}

/// Returns the classes in a selector that end with a digit.
pub(crate) fn numbered_classes(selector: &str) -> impl Iterator<Item = &str> {
    let classes = selector.split('.').skip(1);
    let classes = classes.filter_map(|rest| rest.split([' ', ':', '[', '>', '#', ')']).next());
    classes.filter(|class| class.ends_with(|c: char| c.is_ascii_digit()))
}

/// Returns a class without the number at its end.
pub(crate) fn without_number(class: &str) -> &str {
    class.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Returns whether the number of a class is the place of a cell, as that of `column-3`.
fn is_place(class: &str) -> bool {
    let words = without_number(class).trim_end_matches(['-', '_']).to_ascii_lowercase();
    words.rsplit(['-', '_']).next().is_some_and(|last| PLACES.contains(&last))
}

/// Returns whether a selector has a part of an address.
pub(crate) fn is_address(selector: &str) -> bool {
    ["[href*=", "[src*=", "[action*="].iter().any(|part| selector.contains(part))
}

/// Marks the selectors that have a word of the `known` values of the author's account, and moves them
/// to the end.
pub(crate) fn mark_own(proposals: &mut [SelectorProposal], known: &KnownValues) {
    for proposal in proposals.iter_mut() {
        proposal.may_be_own = has_known_value(&proposal.selector, known);
    }
    // Stable: within each group, the order of preference stays.
    proposals.sort_by_key(|proposal| proposal.may_be_own);
}

/// Returns whether the value of an attribute, an identifier or a class in a selector has one of the
/// values as a word: with no letter and no digit beside it. Upper case makes no difference.
pub(crate) fn has_known_value(selector: &str, known: &KnownValues) -> bool {
    // The escapes of CSS; quotes within a string do not end it.
    let selector =
        selector.replace("\\\\", "").replace("\\\"", "'").replace('\\', "").to_lowercase();
    let has_word = |value: &String| {
        let value = value.trim().to_lowercase();
        let is_word = |at: usize| {
            let before = selector.get(..at).unwrap_or_default();
            let after = selector.get(at.saturating_add(value.len())..).unwrap_or_default();
            let is_in_string = before.matches('"').count() % 2 == 1;
            // What begins a part of the selector is the name of an element.
            let is_tag = !is_in_string && (before.is_empty() || before.ends_with(' '));
            !is_tag
                && !before.ends_with(POSITION)
                && !before.ends_with(char::is_alphanumeric)
                && !after.starts_with(char::is_alphanumeric)
        };
        value.chars().count() >= MIN_WORD_CHARS
            && selector.match_indices(value.as_str()).any(|(at, _)| is_word(at))
    };
    known.values().any(has_word)
}

/// Returns selectors of an element by what it is itself.
fn local(element: &PageNode) -> Vec<String> {
    let Some(tag) = element.tag.as_deref() else { return vec![] };
    let tag = identifier(tag);
    let attribute = |name: &str| element.attributes.get(name).map(String::as_str);
    let mut selectors = Vec::new();
    for name in TEST_ATTRIBUTES {
        let value = attribute(name).filter(|value| is_steady(value));
        selectors.extend(value.map(|value| format!("[{name}={}]", string(value))));
    }
    if let Some(id) = attribute("id").filter(|id| is_steady(id)) {
        selectors.push(format!("#{}", identifier(id)));
    }
    let data = element.attributes.iter().filter(|(name, value)| {
        name.starts_with("data-")
            && !TEST_ATTRIBUTES.contains(&name.as_str())
            && is_steady(name)
            && is_steady(value)
    });
    let data =
        data.take(3).map(|(name, value)| format!("{tag}[{}={}]", identifier(name), string(value)));
    selectors.extend(data);
    for name in STEADY_ATTRIBUTES {
        let value = attribute(name).filter(|value| is_steady(value) && *value != "off");
        selectors.extend(value.map(|value| format!("{tag}[{name}={}]", string(value))));
    }
    for name in ["action", "href"] {
        let part = attribute(name).and_then(exit_part);
        selectors.extend(part.map(|part| format!("{tag}[{name}*={}]", string(part))));
    }
    let kinds = ["password", "email", "tel", "search", "submit", "checkbox"];
    let kind = attribute("type").filter(|kind| kinds.contains(kind));
    selectors.extend(kind.map(|kind| format!("{tag}[type={kind}]")));
    selectors.extend(attribute("role").map(|role| format!("{tag}[role={}]", string(role))));
    let classes = steady_classes(element);
    if let [first, second, ..] = classes.as_slice() {
        selectors.push(format!("{tag}.{}.{}", identifier(first), identifier(second)));
    }
    selectors.extend(classes.iter().take(3).map(|class| format!("{tag}.{}", identifier(class))));
    // An address may have words of the account in it.
    for name in ["action", "src", "href"] {
        let part = attribute(name).and_then(address_part);
        selectors.extend(part.map(|part| format!("{tag}[{name}*={}]", string(part))));
    }
    selectors
}

/// Returns selectors of an element in a row by what it is itself. They also have its classes with a number: of
/// one element, nothing tells whether the number is that of what it shows, but the other rows do.
fn local_in_row(element: &PageNode) -> Vec<String> {
    let mut selectors = local(element);
    let Some(tag) = element.tag.as_deref().map(identifier) else { return selectors };
    let classes = element.attributes.get("class").map(String::as_str).unwrap_or_default();
    let numbered = classes.split_ascii_whitespace().filter(|class| is_numbered(class)).take(3);
    selectors.extend(numbered.map(|class| format!("{tag}.{}", identifier(class))));
    selectors
}

/// Returns whether a class is words and a short number after them, such as `zero-width-720`. Programs that make
/// up classes mix letters and digits.
pub(crate) fn is_numbered(name: &str) -> bool {
    let Some((words, number)) = name.rsplit_once('-') else { return false };
    let is_number = (1..=MAX_NUMBER_DIGITS).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic());
    is_number
        && words.len() <= MAX_WORDS_BYTES
        && words.split('-').all(is_word)
        && words.split('-').any(|word| is_readable(&word.to_ascii_lowercase()))
        && !GENERATORS.iter().any(|prefix| name.starts_with(prefix))
        && !is_hashed(name)
}

/// Returns the classes of an element that seem to be chosen by somebody, and are no states.
pub(crate) fn steady_classes(element: &PageNode) -> Vec<&str> {
    let classes = element.attributes.get("class").map(String::as_str).unwrap_or_default();
    let classes = classes.split_ascii_whitespace();
    classes.filter(|class| is_steady(class) && !STATES.contains(class)).collect()
}

/// Returns the selectors of an element by classes that a program seems to have made up.
fn hashed_selectors(element: &PageNode) -> Vec<String> {
    let Some(tag) = element.tag.as_deref().map(identifier) else { return vec![] };
    let classes = element.attributes.get("class").map(String::as_str).unwrap_or_default();
    let hashed = classes.split_ascii_whitespace().filter(|class| is_hashed(class)).take(2);
    hashed.map(|class| format!("{tag}.{}", identifier(class))).collect()
}

/// Returns the part of a URL that tells that it signs out.
fn exit_part(url: &str) -> Option<&str> {
    let lower = url.to_ascii_lowercase();
    let (at, length) = EXITS.iter().find_map(|exit| Some((lower.find(exit)?, exit.len())))?;
    url.get(at..at.checked_add(length)?)
}

/// Returns the path of a URL without what may be the number of an account.
pub(crate) fn address_part(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let path = path.split_once("://").map_or(path, |(_, rest)| {
        rest.find('/').map_or("", |at| rest.get(at..).unwrap_or_default())
    });
    let digits = path.find(|c: char| c.is_ascii_digit());
    let part = digits.map_or(path, |at| {
        // Letters before the number may belong to it.
        let before = path.get(..at).unwrap_or_default();
        before.rfind('/').and_then(|slash| before.get(..=slash)).unwrap_or(before)
    });
    (part.len() > 2 && part.len() <= 80).then_some(part)
}

/// Returns selectors of an element below an ancestor that has one of its own, the nearest first. `own_selectors`
/// returns those of an element by what it is itself.
fn anchored(
    page: &PageTree,
    (scope, node): (usize, usize),
    own_selectors: fn(&PageNode) -> Vec<String>,
    select: Select<'_>,
) -> Vec<String> {
    let mut selectors = Vec::new();
    let mut at = node;
    let mut steps: Vec<String> = Vec::new();
    for _ in 0..MAX_ANCHORS {
        let Some((step, parent)) = step(page, at) else { break };
        steps.insert(0, step);
        if parent == scope || page.is_root(parent) {
            break;
        }
        let is_only = |anchor: &String| select(page, scope, anchor).as_slice() == [parent];
        if let Some(anchor) =
            page.nodes.get(parent).map(own_selectors).and_then(|all| all.into_iter().find(is_only))
        {
            let mut own = page.nodes.get(node).map(own_selectors).unwrap_or_default();
            own.extend(page.nodes.get(node).and_then(|node| node.tag.as_deref()).map(identifier));
            selectors.extend(own.iter().map(|own| format!("{anchor} {own}")));
            selectors.push(format!("{anchor} > {}", steps.join(" > ")));
            break;
        }
        at = parent;
    }
    selectors
}

/// Returns the path of an element below a scope, by the positions of elements.
fn structure(page: &PageTree, (scope, node): (usize, usize)) -> String {
    let mut steps = Vec::new();
    let mut at = node;
    while let Some((step, parent)) = step(page, at).filter(|_| steps.len() < MAX_DEPTH) {
        steps.insert(0, step);
        if parent == scope || page.is_root(parent) {
            break;
        }
        at = parent;
    }
    steps.join(" > ")
}

/// Returns the selector of an element among its siblings, and its parent.
fn step(page: &PageTree, node: usize) -> Option<(String, usize)> {
    let element = page.nodes.get(node)?;
    let (tag, parent) = (element.tag.as_deref()?, element.parent?);
    let same = page
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, other)| other.parent == Some(parent) && other.tag.as_deref() == Some(tag));
    let same: Vec<_> = same.map(|(index, _)| index).collect();
    let tag = identifier(tag);
    if same.len() == 1 {
        return Some((tag, parent));
    }
    let place = same.iter().position(|index| *index == node)?.saturating_add(1);
    Some((format!("{tag}{POSITION}{place})"), parent))
}

/// Returns whether a name seems to be chosen by somebody: those that programs make up have digits or
/// are long.
pub(crate) fn is_steady(name: &str) -> bool {
    let is_made_up = |part: &str| {
        let digits = part.chars().filter(char::is_ascii_digit).count();
        let letters = part.chars().filter(|c| c.is_alphabetic()).count();
        digits > 3
            || (digits > 0 && letters == 0)
            || (digits > 0 && letters > 0 && part.len() > 4 && digits.saturating_mul(4) > letters)
    };
    (1..=48).contains(&name.len())
        && !name.contains(char::is_whitespace)
        && !name.contains([':', '{', '}', '[', '/'])
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.split(['-', '_', '.']).any(is_made_up)
        && !is_hashed(name)
}

/// Returns whether a program seems to have made up a class or an identifier when the site was built:
/// the next version of the site may have another one.
pub(crate) fn is_hashed(name: &str) -> bool {
    // The identifiers of React.
    let is_numbered = name.starts_with([':', '«']);
    let is_generated = GENERATORS.iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            let is_code = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            (5..=8).contains(&rest.len()) && rest.bytes().all(is_code)
        })
    });
    is_numbered || is_generated || name.split(['-', '_', '.']).any(is_random)
}

/// Returns whether a part of a name is random letters and digits rather than words.
fn is_random(part: &str) -> bool {
    // Names in other scripts are words.
    if part.len() < MIN_HASH_BYTES || !part.is_ascii() {
        return false;
    }
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
    if letters == 0 {
        return false;
    }
    let words = words_in(part);
    let readable: usize = words.iter().filter(|word| is_readable(word)).map(String::len).sum();
    digits.saturating_mul(4) > letters || readable.saturating_mul(2) <= letters
}

/// Returns whether a word in lower case can be read, or is a usual abbreviation.
fn is_readable(word: &str) -> bool {
    word.len() > 2 && (word.contains(VOWELS) || ABBREVIATIONS.contains(&word))
}

/// Returns the words of a name in camel case, in lower case and without digits.
pub(crate) fn words_in(part: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    let mut before = ' ';
    let mut rest = part.chars().peekable();
    while let Some(letter) = rest.next() {
        let is_first = !before.is_ascii_alphabetic();
        // The last capital letter of several belongs to the next word, as in `HTMLForm`.
        let is_hump = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || rest.peek().is_some_and(char::is_ascii_lowercase));
        if letter.is_ascii_alphabetic() {
            if is_first || is_hump {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(letter.to_ascii_lowercase());
            }
        }
        before = letter;
    }
    words
}

/// Serializes an identifier (CSSOM, section 2.1).
pub(crate) fn identifier(name: &str) -> String {
    let mut text = String::new();
    // A string can be written to without an error.
    let _ = serialize_identifier(name, &mut text);
    text
}

/// Serializes a string (CSSOM, section 2.1).
pub(crate) fn string(value: &str) -> String {
    let mut text = String::new();
    let _ = serialize_string(value, &mut text);
    text
}
