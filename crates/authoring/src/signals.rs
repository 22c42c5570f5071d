//! Proposals of conditions that tell a page from the other known pages of a platform.

use std::{collections::BTreeMap, sync::Arc};

use domain::workflow::{Condition, PageNode, PageTree, Select, find_elements, matches_url};
use ports::browser::Screen;
use serde::Serialize;

use crate::{
    draft::{KnownValues, PageKind},
    naming::label_of,
    rows::Rows,
    selectors::{EXITS, has_known_value, is_positional, mark_own, propose_selectors},
    visibility::Visibility,
};

const MAX_PROPOSALS: usize = 8;
/// Elements of a page that are looked at for conditions.
const MAX_ELEMENTS: usize = 20;
/// Form fields of a page whose labels are looked at.
const MAX_LABELS: usize = 50;
/// Refused requests for which a condition is proposed, and the length of their path.
const MAX_REFUSED: usize = 2;
const MAX_PATH_CHARS: usize = 500;
/// Characters of a text that a condition compares.
const MAX_TEXT_CHARS: usize = 120;

/// A page of a platform as it was when its author marked it.
#[derive(Debug, Clone, Default)]
pub struct KnownPage {
    pub url: String,
    pub tree: PageTree,
}

/// A page as it is on the other kind of screen than that of its author.
#[derive(Debug, Clone)]
pub struct OtherScreen {
    pub screen: Screen,
    pub page: KnownPage,
}

impl OtherScreen {
    /// Returns `phone` or `desktop`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.screen {
            Screen::Phone => "phone",
            Screen::Desktop => "desktop",
        }
    }
}

/// A condition that holds on a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionProposal {
    pub condition: Condition,
    /// What it says, for the author.
    pub text: String,
    /// The names of other known pages on which it holds as well.
    pub also_on: Vec<String>,
    /// Whether its element is in a row of a list, which an account without rows does not have.
    pub in_row: bool,
    /// Whether it counts elements, so that it is about another one once the page adds an element before.
    pub positional: bool,
    /// Whether it has a word that equals a value of the author's account.
    pub may_be_own: bool,
    /// The other kind of screen, `phone` or `desktop`, if it does not hold there.
    pub hidden_on: Option<&'static str>,
    /// How attempts with a wrong password or code are counted by it; `None` for other pages.
    pub counts: Option<Counting>,
}

impl ConditionProposal {
    /// Returns whether a page may be recognized by it without its author having chosen it: nothing warns of
    /// it.
    pub(crate) fn is_safe(&self) -> bool {
        let is_lasting = !self.in_row && !self.positional && !self.may_be_own;
        self.also_on.is_empty() && is_lasting && self.hidden_on.is_none()
    }
}

/// When a run counts another attempt with a wrong password or code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Counting {
    /// With each response.
    EachAttempt,
    /// Only if the condition did not hold in between, or if another document is loaded.
    AfterVanishing,
}

/// A condition for a page, and what is known of its element.
struct Candidate {
    condition: Condition,
    /// Whether nothing can be seen in its element.
    is_empty: bool,
    in_row: bool,
}

/// Returns conditions that hold on `page`, those that hold on no other page first. Those that count elements
/// come after them, and then those that do not hold on the other kind of screen, those for elements in rows of
/// lists, and those with one of the `known` values of the author's account; of each, those for elements with
/// nothing to see in them last. With `node`, they are about that element.
#[must_use]
pub fn propose_conditions(
    kind: PageKind,
    page: &KnownPage,
    node: Option<usize>,
    others: &BTreeMap<String, Vec<Arc<KnownPage>>>,
    known: &KnownValues,
    other_screen: Option<&OtherScreen>,
    select: Select<'_>,
) -> Vec<ConditionProposal> {
    let counts = kind.is_refusal().then_some(Counting::AfterVanishing);
    let mut proposals: Vec<(bool, ConditionProposal)> = Vec::new();
    for Candidate { condition, is_empty, in_row } in candidates(kind, page, node, known, select) {
        let holds = |page: &KnownPage| holds(&condition, page, select);
        if !holds(page) || proposals.iter().any(|(_, other)| other.condition == condition) {
            continue;
        }
        let also_on = others.iter().filter(|(_, pages)| pages.iter().any(|page| holds(page)));
        let also_on = also_on.map(|(name, _)| name.clone()).collect();
        let text = describe(&condition);
        let positional = selector_of(&condition).is_some_and(is_positional);
        let may_be_own = has_own_value(&condition, known);
        let hidden = other_screen.filter(|other| !holds(&other.page));
        let hidden_on = hidden.map(OtherScreen::name);
        let proposal = ConditionProposal {
            condition,
            text,
            also_on,
            in_row,
            positional,
            may_be_own,
            hidden_on,
            counts,
        };
        proposals.push((is_empty, proposal));
    }
    proposals.sort_by_key(|(is_empty, proposal)| {
        let ConditionProposal { in_row, positional, may_be_own, hidden_on, also_on, .. } = proposal;
        (*may_be_own, *in_row, hidden_on.is_some(), *positional, *is_empty, also_on.len())
    });
    proposals.into_iter().take(MAX_PROPOSALS).map(|(_, proposal)| proposal).collect()
}

fn candidates(
    kind: PageKind,
    page: &KnownPage,
    node: Option<usize>,
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<Candidate> {
    let seen = Visibility::of(&page.tree);
    // Other pages have no data of an account.
    let rows = kind.has_data().then(|| Rows::of(&page.tree));
    let is_in_row = |node: usize| rows.as_ref().is_some_and(|rows| rows.has(node));
    let nodes = node
        .map_or_else(|| telling_elements(kind, &page.tree, &seen, &is_in_row), |node| vec![node]);
    let per_element = if node.is_some() { MAX_PROPOSALS } else { 2 };
    let mut found = Vec::new();
    for node in nodes {
        let mut selectors = propose_selectors(&page.tree, node, select);
        mark_own(&mut selectors, known);
        // Stable: a page may be recognized by any of several elements.
        selectors.sort_by_key(|found| (found.may_be_own, found.positional));
        let selectors = selectors.into_iter().filter(|found| !found.hashed);
        let selectors: Vec<_> = selectors.take(per_element).collect();
        let text = selectors.first().zip(short_text(&page.tree, node));
        let text = text.filter(|_| kind.is_message()).map(|(first, text)| {
            let contains = [(page_language(&page.tree), vec![text])].into();
            Condition::Text { selector: first.selector.clone(), contains }
        });
        let selectors = selectors.into_iter().map(|found| Condition::Selector(found.selector));
        let (is_empty, in_row) = (!seen.is_filled(node), is_in_row(node));
        // After those that do not depend on the language.
        let conditions = selectors.chain(text);
        found.extend(conditions.map(|condition| Candidate { condition, is_empty, in_row }));
    }
    if node.is_none() {
        let address = address_condition(&page.url);
        found.extend(address.map(|condition| Candidate {
            condition,
            is_empty: false,
            in_row: false,
        }));
    }
    found
}

/// Returns the selector of a condition about an element; `None` for one about something else, and for one that
/// has others in it.
pub(crate) fn selector_of(condition: &Condition) -> Option<&str> {
    match condition {
        Condition::Selector(selector) | Condition::Text { selector, .. } => Some(selector),
        Condition::All(_)
        | Condition::Any(_)
        | Condition::Not(_)
        | Condition::Signal(_)
        | Condition::Url(_)
        | Condition::Host(_)
        | Condition::Query { .. }
        | Condition::Fragment(_)
        | Condition::Cookie(_)
        | Condition::Response { .. }
        | Condition::HttpStatus(_) => None,
    }
}

/// Returns whether a condition of one of the proposed kinds has one of the values as a word.
fn has_own_value(condition: &Condition, known: &KnownValues) -> bool {
    if let Condition::Text { contains, .. } = condition {
        // As a string of a selector.
        let mut texts = contains.values().flatten().map(|text| format!("\"{text}\""));
        if texts.any(|text| has_known_value(&text, known)) {
            return true;
        }
    }
    let path = if let Condition::Url(path) = condition { Some(path.as_str()) } else { None };
    selector_of(condition).or(path).is_some_and(|place| has_known_value(place, known))
}

/// Returns conditions for a wrong password or code, those for `refused` requests first: the URLs and statuses
/// of their responses, the newest first.
pub(crate) fn with_refusals<'a>(
    kind: PageKind,
    proposals: Vec<ConditionProposal>,
    refused: impl Iterator<Item = (&'a str, u16)>,
) -> Vec<ConditionProposal> {
    let name =
        if kind == PageKind::WrongCode { "request with the code" } else { "sign-in request" };
    let mut all: Vec<ConditionProposal> = Vec::new();
    for (url, status) in refused {
        let Some(url) = path_pattern(url).filter(|path| path.chars().count() <= MAX_PATH_CHARS)
        else {
            continue;
        };
        let text = format!("The {name} to `{url}` is answered {status}: counts each attempt");
        let condition = Condition::Response { url, status, has: None };
        if all.len() < MAX_REFUSED && all.iter().all(|other| other.condition != condition) {
            let counts = Some(Counting::EachAttempt);
            all.push(ConditionProposal {
                condition,
                text,
                also_on: vec![],
                in_row: false,
                positional: false,
                may_be_own: false,
                hidden_on: None,
                counts,
            });
        }
    }
    all.extend(proposals);
    all.truncate(MAX_PROPOSALS);
    all
}

/// Returns the elements that tell most about a page of this kind, of those that can be seen: what is in a row
/// of a list last, and what has a text or a control in it first.
fn telling_elements(
    kind: PageKind,
    page: &PageTree,
    seen: &Visibility,
    is_in_row: &dyn Fn(usize) -> bool,
) -> Vec<usize> {
    let visible = page.nodes.iter().enumerate().filter(|(index, _)| seen.is_seen(page, *index));
    let rated = visible.filter_map(|(index, node)| Some((rating(kind, node)?, index)));
    let mut rated: Vec<_> = rated.collect();
    if kind == PageKind::Code {
        rate_fields(page, &mut rated);
    }
    rated.sort_by_cached_key(|(rating, index)| {
        (is_in_row(*index), !seen.is_filled(*index), *rating, *index)
    });
    rated.into_iter().take(MAX_ELEMENTS).map(|(_, index)| index).collect()
}

/// Has a form field whose label is about codes tell as much as one whose name is, and one in which nothing
/// is typed less than the others.
fn rate_fields(page: &PageTree, rated: &mut [(usize, usize)]) {
    let mut labels = 0;
    for (rating, index) in rated.iter_mut().filter(|(rating, _)| *rating > NAMED_CODE) {
        let node = page.nodes.get(*index).filter(|node| node.tag.as_deref() == Some("input"));
        let Some(node) = node else { continue };
        let kind = node.attributes.get("type").map_or("text", String::as_str).to_ascii_lowercase();
        if !TYPED.contains(&kind.as_str()) {
            *rating = rating.saturating_add(1);
            continue;
        }
        if labels == MAX_LABELS {
            continue;
        }
        labels = labels.saturating_add(1);
        let label = label_of(page, *index).to_lowercase();
        if CODES.iter().chain(CODE_LABELS).any(|word| label.contains(word)) {
            *rating = NAMED_CODE;
        }
    }
}

/// Tags, attributes, and words of which one of the attributes contains one. No tags stand for any tag,
/// no attributes and words for any element with such a tag.
type Rule = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

const OWN: &[&str] = &["user", "account", "profile", "avatar"];
const CODES: &[&str] = &["otp", "totp", "code", "token", "mfa", "2fa", "tfa"];
/// What else a label of a field for codes has.
const CODE_LABELS: &[&str] =
    &["one-time", "verification", "authenticat", "código", "codice", "kod"];
/// The place of the rule for fields that are named so.
const NAMED_CODE: usize = 1;
/// Types of form fields in which a code is typed; it is a text where there is none.
const TYPED: &[&str] = &["text", "tel", "number", "password"];
const FAULTS: &[&str] =
    &["error", "alert", "danger", "invalid", "warning", "flash", "message", "notice"];
/// Attributes that say what an element is for.
pub(crate) const MARKS: &[&str] =
    &["href", "action", "formaction", "id", "class", "name", "data-testid"];

/// Returns what is looked for on a page of this kind, what tells most first.
const fn rules(kind: PageKind) -> &'static [Rule] {
    match kind {
        PageKind::SignIn => &[
            (&["input"], &["type"], &["password"]),
            (&["input"], &["autocomplete"], &["username", "email"]),
            (&["input"], &["name"], &["user", "login", "email"]),
            (&["form"], &["action"], &["login", "signin", "sign-in", "auth"]),
        ],
        PageKind::SignedIn => &[
            (&["a", "form", "button"], MARKS, EXITS),
            (&["a"], &["href"], &["/account", "/profile", "/settings", "/me", "/user"]),
            (&[], &["data-testid", "id"], OWN),
            (&[], &["class"], OWN),
            (&["nav", "header"], &[], &[]),
        ],
        PageKind::Code => &[
            (&["input"], &["autocomplete"], &["one-time-code"]),
            (&["input"], &["name", "id", "data-testid"], CODES),
            (&["form"], &["action"], CODES),
            (&["input"], &[], &[]),
        ],
        PageKind::Captcha => &[
            (&["iframe"], &["src"], &["captcha", "challenge", "turnstile"]),
            (&[], &["class", "id"], &["captcha", "turnstile"]),
        ],
        PageKind::WrongPassword | PageKind::WrongCode | PageKind::Locked | PageKind::Down => &[
            (&[], &["role"], &["alert"]),
            (&[], &["class", "id", "data-testid"], FAULTS),
            (&["h1"], &[], &[]),
        ],
        PageKind::Push | PageKind::SecurityQuestion | PageKind::AccountPicker => {
            &[(&["form"], &[], &[]), (&["h1", "main"], &[], &[]), (&["input"], &[], &[])]
        }
    }
}

/// Returns how much an element tells, 0 for the most.
fn rating(kind: PageKind, node: &PageNode) -> Option<usize> {
    let tag = node.tag.as_deref()?;
    rules(kind).iter().position(|(tags, attributes, words)| {
        let mut values = attributes.iter().filter_map(|name| node.attributes.get(*name));
        let has_word = |value: &String| {
            let value = value.to_ascii_lowercase();
            words.iter().any(|word| value.contains(word))
        };
        (tags.is_empty() || tags.contains(&tag)) && (words.is_empty() || values.any(has_word))
    })
}

fn short_text(page: &PageTree, node: usize) -> Option<String> {
    let text = page.text_content(node);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = text.chars().count();
    (1..=MAX_TEXT_CHARS).contains(&length).then_some(text)
}

/// Returns the language of a page, without its region; English if it has none.
#[must_use]
pub fn page_language(page: &PageTree) -> String {
    let tag = page_language_tag(page);
    tag.split('-').next().unwrap_or_default().to_owned()
}

/// Returns the language tag of a page with its region, such as `de-CH`; that of English if it has none.
pub(crate) fn page_language_tag(page: &PageTree) -> String {
    let html = page.nodes.iter().find(|node| node.tag.as_deref() == Some("html"));
    let tag = html.and_then(|html| html.attributes.get("lang")).map(String::as_str);
    let mut parts = tag.unwrap_or_default().trim().split(['-', '_']);
    let language = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_alphabetic = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !(2..=3).contains(&language.len()) || !is_alphabetic(&language) {
        return "en".to_owned();
    }
    // A script, which has four letters, may be before the region.
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let region = parts.take(2).find(|part| {
        (part.len() == 2 && is_alphabetic(part)) || (part.len() == 3 && is_number(part))
    });
    region.map_or_else(
        || language.clone(),
        |region| format!("{language}-{}", region.to_ascii_uppercase()),
    )
}

/// Returns a condition about the path of a URL, as [`path_pattern`] has it.
fn address_condition(url: &str) -> Option<Condition> {
    let pattern = path_pattern(url)?;
    (pattern != "/").then_some(Condition::Url(pattern))
}

/// Returns a pattern for the path of a URL, in which any text may stand for parts with numbers and for
/// e-mail addresses.
fn path_pattern(url: &str) -> Option<String> {
    let path = url::Url::parse(url).ok()?.path().to_owned();
    // An at sign that is encoded has a digit.
    let is_own = |part: &str| part.chars().any(|c| c.is_ascii_digit() || c == '@');
    let parts = path.split('/').map(|part| if is_own(part) { "*" } else { part });
    Some(parts.collect::<Vec<_>>().join("/"))
}

/// Returns whether a condition of one of the proposed kinds holds on a page.
fn holds(condition: &Condition, page: &KnownPage, select: Select<'_>) -> bool {
    let visible = |selector: &str| {
        let found = find_elements(&page.tree, 0, selector, select);
        found.into_iter().find(|index| page.tree.nodes.get(*index).is_some_and(|node| node.visible))
    };
    match condition {
        Condition::Selector(selector) => visible(selector).is_some(),
        Condition::Text { selector, contains } => visible(selector).is_some_and(|node| {
            let text = short_text(&page.tree, node).unwrap_or_default().to_lowercase();
            contains.values().flatten().any(|wanted| text.contains(&wanted.to_lowercase()))
        }),
        Condition::Url(pattern) => matches_url(pattern, &page.url),
        Condition::All(_)
        | Condition::Any(_)
        | Condition::Not(_)
        | Condition::Signal(_)
        | Condition::Host(_)
        | Condition::Query { .. }
        | Condition::Fragment(_)
        | Condition::Cookie(_)
        | Condition::Response { .. }
        | Condition::HttpStatus(_) => false,
    }
}

/// Returns what a condition says, in a sentence.
#[must_use]
pub fn describe(condition: &Condition) -> String {
    let list = |conditions: &[Condition], word: &str| {
        conditions.iter().map(describe).collect::<Vec<_>>().join(word)
    };
    match condition {
        Condition::All(all) => list(all, " and "),
        Condition::Any(any) if any.is_empty() => "Not known yet".to_owned(),
        Condition::Any(any) => list(any, " or "),
        Condition::Not(inner) => format!("Not: {}", describe(inner)),
        Condition::Signal(name) => format!("The signal `{name}` holds"),
        Condition::Selector(selector) => format!("The element `{selector}` is visible"),
        Condition::Text { selector, contains } => {
            let texts: Vec<_> =
                contains.values().flatten().map(|text| format!("“{text}”")).collect();
            format!("The element `{selector}` contains {}", texts.join(" or "))
        }
        Condition::Url(pattern) => format!("The path of the address is `{pattern}`"),
        Condition::Host(host) => format!("The host is `{host}`"),
        Condition::Query { name, value } => match value {
            Some(value) => format!("The address has the parameter `{name}` with `{value}`"),
            None => format!("The address has the parameter `{name}`"),
        },
        Condition::Fragment(pattern) => format!("The address after # is `{pattern}`"),
        Condition::Cookie(name) => format!("There is the cookie `{name}`"),
        Condition::Response { url, status, .. } => {
            format!("The page received status {status} from `{url}`")
        }
        Condition::HttpStatus(statuses) => {
            let statuses: Vec<_> = statuses.iter().map(u16::to_string).collect();
            format!("The page has status {}", statuses.join(" or "))
        }
    }
}
