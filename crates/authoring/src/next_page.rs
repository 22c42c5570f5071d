//! Proposals of what leads to the next page of a list: on another page, the same place may have another
//! element, such as the link back.

use domain::workflow::{FRAME_SEPARATOR, PageNode, PageTree, Select};

use crate::{
    ancestors::{ancestors, with_ancestors},
    selectors::{
        SelectorProposal, identifier, is_steady, propose_selectors, root_around, steady_classes,
        string,
    },
};

/// Selectors that are proposed.
const MAX_PROPOSALS: usize = 6;
/// Elements around one that may be its link, its item in a list of pages, or that list.
const MAX_AROUND: usize = 4;
/// Items of a list of pages: each is searched for the mark of the current page.
const MAX_ITEMS: usize = 100;
/// Elements around one by which a selector is limited to a part of the page.
const MAX_SCOPES: usize = 12;
/// The length of a name of an element by which it is found.
const MAX_NAME_CHARS: usize = 48;
/// What the next page is called, in lower case: parts of words in several languages, and signs.
const NEXT: &[&str] = &[
    "next",
    "nächste",
    "naechste",
    "weiter",
    "suivant",
    "siguiente",
    "próxim",
    "proxim",
    "prossim",
    "successiv",
    "volgende",
    "następn",
    "nästa",
    "næste",
    "seuraava",
    "další",
    "следующ",
    "sonraki",
    "επόμεν",
    "következő",
    "următo",
    "наступн",
    "التالي",
    "הבא",
    "下一",
    "次",
    "다음",
    "»",
    "›",
    "→",
    "❯",
];
/// The word of classes of what leads to the next page, and those of what leads back.
pub(crate) const NEXT_WORDS: &[&str] = &["next"];
pub(crate) const PREVIOUS_WORDS: &[&str] = &["back", "prev", "previous"];
/// The words of classes of the page that is shown.
const CURRENT: &[&str] = &["active", "current", "selected"];

/// Returns selectors of what leads to the next page, of which the element at `node` is a part: by what it
/// means, then as what follows the current page, then by its name in the language of the page, and by its
/// position last. Each finds this element first, or a link to the same address. One that also finds elements
/// that lead elsewhere comes after those that do not: where this element is gone, it finds them.
pub(crate) fn propose_next_page(
    page: &PageTree,
    node: usize,
    select: Select<'_>,
) -> Vec<SelectorProposal> {
    let target = target_of(page, node);
    let Some(root) = root_around(page, target) else { return vec![] };
    let others = propose_selectors(page, target, select);
    // An element of a shadow root that cannot be found has none.
    let Some(first) = others.first() else { return vec![] };
    let prefix = first.selector.rsplit_once(FRAME_SEPARATOR);
    let prefix = prefix.map(|(host, _)| format!("{host}{FRAME_SEPARATOR} ")).unwrap_or_default();
    let after_current = after_current(page, target);
    // The number of a page is that of another one there.
    let is_paged = !after_current.is_empty() || is_number(&page.text_content(target));
    let candidates = by_meaning(page, target).into_iter().chain(after_current);
    let candidates = candidates.map(|selector| (selector, false));
    let named = by_name(page, target, NameKind::Words).into_iter().map(|name| (name, true));
    let of_all = |selector: &str| {
        let found = select(page, root, selector);
        let is_visible = |index: &&usize| page.nodes.get(**index).is_some_and(|node| node.visible);
        // A run clicks the first visible one: a site may have another one for small screens.
        let clicked = found.iter().find(is_visible).or_else(|| found.first());
        let is_it = clicked.is_some_and(|clicked| leads_as(page, *clicked, target));
        let is_ambiguous = !found.iter().all(|other| leads_as(page, *other, target));
        is_it.then_some((found.len(), is_ambiguous))
    };
    let mut proposals = Vec::new();
    let all = candidates.chain(named);
    for (selector, has_words) in all.filter(|(selector, _)| !selector.contains(FRAME_SEPARATOR)) {
        let plain = of_all(&selector);
        let limit = |scope: String| {
            let limited = format!("{scope} {selector}");
            let (matches, is_ambiguous) = of_all(&limited)?;
            (!is_ambiguous).then_some((limited, (matches, is_ambiguous)))
        };
        let is_plain_enough = plain.is_some_and(|(_, is_ambiguous)| !is_ambiguous);
        let limits = if is_plain_enough { vec![] } else { scopes(page, target) };
        let limited = limits.into_iter().find_map(limit);
        let both = limited.into_iter().chain(plain.map(|found| (selector.clone(), found)));
        for (selector, (matches, is_ambiguous)) in both {
            let proposal = SelectorProposal {
                selector: format!("{prefix}{selector}"),
                matches,
                hashed: false,
                positional: false,
                may_be_own: false,
                has_words,
            };
            proposals.push((proposal, is_ambiguous));
        }
    }
    proposals.extend(others.into_iter().map(|one| {
        let own = one.selector.rsplit_once(FRAME_SEPARATOR).map_or(&*one.selector, |(_, own)| own);
        let is_ambiguous =
            one.matches > 1 && of_all(own.trim()).is_none_or(|(_, is_ambiguous)| is_ambiguous);
        let is_other = is_common(own) || is_ambiguous || (is_paged && !is_of_one(own));
        let positional = one.positional || (is_other && !selects_next(own));
        (SelectorProposal { positional, ..one }, is_ambiguous)
    }));
    // Stable: within each group, the order of preference stays.
    proposals.sort_by_key(|(one, is_ambiguous)| {
        (one.positional, *is_ambiguous, one.has_words, one.hashed)
    });
    let mut proposals: Vec<_> = proposals.into_iter().map(|(one, _)| one).collect();
    let mut seen = std::collections::BTreeSet::new();
    proposals.retain(|one| seen.insert(one.selector.clone()));
    proposals.truncate(MAX_PROPOSALS);
    proposals
}

/// Returns the link or button that an element is a part of, or the only link in it, or else the element.
fn target_of(page: &PageTree, node: usize) -> usize {
    let is_target = |index: &usize| is_target(page, *index);
    if let Some(around) = nearest(page, node).find(is_target) {
        return around;
    }
    let inside = page.descendants(node).map(|(index, _)| index).filter(is_target);
    let inside: Vec<_> = inside.take(2).collect();
    if let [only] = inside.as_slice() { *only } else { node }
}

/// Returns whether an element is a link or a button.
pub(crate) fn is_target(page: &PageTree, node: usize) -> bool {
    page.nodes.get(node).is_some_and(|element| {
        let tag = element.tag.as_deref();
        let role = element.attributes.get("role").map(String::as_str);
        matches!(tag, Some("a" | "button")) || matches!(role, Some("link" | "button"))
    })
}

/// Returns an element and the three around it in its root, the innermost first.
pub(crate) fn nearest(page: &PageTree, node: usize) -> impl Iterator<Item = usize> {
    with_ancestors(page, node).take_while(|node| !page.is_root(*node)).take(MAX_AROUND)
}

/// Returns whether an element is another one, or leads to the same address.
fn leads_as(page: &PageTree, one: usize, other: usize) -> bool {
    let address = |index: usize| {
        let address = page.nodes.get(index)?.attributes.get("href")?.trim();
        let scheme = address.split_once(':').map(|(scheme, _)| scheme);
        let is_script = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("javascript"));
        // A script says nothing of where each of several links leads to.
        (!address.is_empty() && !address.starts_with('#') && !is_script).then_some(address)
    };
    one == other || address(one).is_some_and(|own| address(other) == Some(own))
}

/// Returns selectors by what an element, or one around it, is called in any language.
fn by_meaning(page: &PageTree, target: usize) -> Vec<String> {
    let Some(element) = page.nodes.get(target) else { return vec![] };
    let Some(tag) = element.tag.as_deref().map(identifier) else { return vec![] };
    let mut selectors = Vec::new();
    let relation = element.attributes.get("rel").map(String::as_str).unwrap_or_default();
    if relation.split_ascii_whitespace().any(|word| word == "next") {
        let operator = if relation == "next" { "=" } else { "~=" };
        selectors.push(format!("{tag}[rel{operator}\"next\"]"));
    }
    selectors.extend(by_name(page, target, NameKind::Signs));
    for (depth, index) in nearest(page, target).enumerate() {
        let Some(around) = page.nodes.get(index) else { continue };
        let own = around.tag.as_deref().map(identifier).unwrap_or_default();
        // What has the links in both directions, such as `prev-next`, has the one back first.
        let is_next = |class: &&str| {
            is_steady(class) && has_word(class, NEXT_WORDS) && !has_word(class, PREVIOUS_WORDS)
        };
        let names = classes(around).filter(is_next);
        selectors.extend(names.map(|class| {
            let inside = if depth == 0 { String::new() } else { format!(" {tag}") };
            format!("{own}.{}{inside}", identifier(class))
        }));
    }
    selectors
}

/// What a name of an element has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameKind {
    /// Words in the language of the page.
    Words,
    /// Signs alone, which are the same in each language.
    Signs,
}

/// Returns selectors by the name of an element that is for people, such as its title.
fn by_name(page: &PageTree, target: usize, kind: NameKind) -> Vec<String> {
    let Some(element) = page.nodes.get(target) else { return vec![] };
    let Some(tag) = element.tag.as_deref().map(identifier) else { return vec![] };
    let selector = |name: &&str| {
        let value = element.attributes.get(*name).filter(|value| is_name_of_next(value))?;
        let is_kind = value.chars().any(char::is_alphabetic) == (kind == NameKind::Words);
        is_kind.then(|| format!("{tag}[{name}={}]", string(value)))
    };
    ["aria-label", "title"].iter().filter_map(selector).collect()
}

/// Returns selectors of the elements around one by their identifiers and classes, the nearest first.
fn scopes(page: &PageTree, target: usize) -> Vec<String> {
    let around = ancestors(page, target).take_while(|node| !page.is_root(*node)).take(MAX_SCOPES);
    let names = around.filter_map(|node| page.nodes.get(node)).flat_map(|element| {
        let id = element.attributes.get("id").filter(|id| is_steady(id));
        let id = id.map(|id| format!("#{}", identifier(id)));
        id.into_iter().chain(own_name(element))
    });
    names.collect()
}

fn is_number(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(char::is_numeric)
}

/// Returns selectors of an element, or of a link to the same address, as what follows the page that is shown
/// in a list of pages.
pub(crate) fn after_current(page: &PageTree, target: usize) -> Vec<String> {
    let Some(tag) = page.nodes.get(target).and_then(|node| node.tag.as_deref()) else {
        return vec![];
    };
    let tag = identifier(tag);
    for item in nearest(page, target) {
        let Some(list) = page.nodes.get(item).and_then(|node| node.parent) else { continue };
        let items = children(page, list);
        if items.len() > MAX_ITEMS {
            continue;
        }
        let pairs = items.iter().zip(items.iter().skip(1));
        let mut marked =
            pairs.filter_map(|(current, next)| Some((mark_of(page, *current)?, *next)));
        let follows = |next: usize| {
            let is_it = |index: usize| leads_as(page, index, target);
            is_it(next) || page.descendants(next).any(|(index, _)| is_it(index))
        };
        // Of several that are marked, none tells the page that is shown.
        let Some((marks, next)) = marked.next() else { continue };
        if marked.next().is_some() || !follows(next) {
            continue;
        }
        let Some(name) = page.nodes.get(next).and_then(|node| node.tag.as_deref()) else {
            continue;
        };
        let is_link = leads_as(page, next, target);
        let inside = if is_link { String::new() } else { format!(" {tag}") };
        let own = identifier(name);
        let around = page.nodes.get(list).and_then(own_name);
        return marks
            .into_iter()
            .map(|mark| match &around {
                Some(around) => format!("{around} > {mark} + {own}{inside}"),
                None => format!("{mark} + {own}{inside}"),
            })
            .collect();
    }
    vec![]
}

/// Returns selectors that tell an item of a list of pages as that of the page that is shown; `None` if it is
/// not.
fn mark_of(page: &PageTree, item: usize) -> Option<Vec<String>> {
    let element = page.nodes.get(item)?;
    let tag = identifier(element.tag.as_deref()?);
    let own = marks(element);
    if !own.is_empty() {
        return Some(own.into_iter().map(|mark| format!("{tag}{mark}")).collect());
    }
    let inside = page.descendants(item).filter(|(index, _)| *index != item);
    let inside = inside.map(|(_, node)| marks(node)).find(|marks| !marks.is_empty())?;
    Some(inside.into_iter().map(|mark| format!("{tag}:has({mark})")).collect())
}

/// Returns what tells an element as that of the page that is shown.
fn marks(element: &PageNode) -> Vec<String> {
    let value = element.attributes.get("aria-current").map(String::as_str);
    let value = value.filter(|value| matches!(*value, "page" | "true"));
    let mut marks: Vec<_> =
        value.map(|value| format!("[aria-current=\"{value}\"]")).into_iter().collect();
    let class = classes(element).find(|class| has_word(class, CURRENT));
    marks.extend(class.map(|class| format!(".{}", identifier(class))));
    marks
}

/// Returns a selector of an element by a class that somebody chose and that is no state; `None` if it has none.
fn own_name(list: &PageNode) -> Option<String> {
    let tag = identifier(list.tag.as_deref()?);
    let class = *steady_classes(list).first()?;
    Some(format!("{tag}.{}", identifier(class)))
}

fn children(page: &PageTree, parent: usize) -> Vec<usize> {
    let all = page.nodes.iter().enumerate();
    let inside = all.filter(|(_, node)| node.parent == Some(parent) && node.tag.is_some());
    inside.map(|(index, _)| index).collect()
}

pub(crate) fn classes(element: &PageNode) -> impl Iterator<Item = &str> {
    let classes = element.attributes.get("class").map(String::as_str).unwrap_or_default();
    classes.split_ascii_whitespace()
}

/// Returns whether a class has one of these words, as `page-current` has `current`.
pub(crate) fn has_word(class: &str, words: &[&str]) -> bool {
    let lower = class.to_ascii_lowercase();
    lower.split(['-', '_']).any(|word| words.contains(&word))
}

/// Returns whether a name of an element, such as its title, is that of the next page, on each page.
pub(crate) fn is_name_of_next(name: &str) -> bool {
    let has_number = name.chars().any(|c| c.is_ascii_digit());
    name.chars().count() <= MAX_NAME_CHARS && !has_number && names_next(name)
}

fn names_next(text: &str) -> bool {
    let lower = text.to_lowercase();
    NEXT.iter().any(|next| lower.contains(next))
}

/// Returns whether a selector has a word for the next page, and none for the one before.
fn selects_next(selector: &str) -> bool {
    let lower = selector.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    names_next(&lower) && !words.any(|word| PREVIOUS_WORDS.contains(&word))
}

/// Returns whether a selector is that of one element by its identifier or its name in tests.
fn is_of_one(selector: &str) -> bool {
    last_part(selector).starts_with(['#', '['])
}

fn last_part(selector: &str) -> &str {
    selector.trim().rsplit(' ').next().unwrap_or_default()
}

/// Returns whether a selector matches elements of any kind by their tag or by a part of their address.
fn is_common(selector: &str) -> bool {
    let last = last_part(selector);
    !last.contains(['.', '#', '[']) || last.contains("[href")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{page, select, with_text};

    fn proposed(page: &PageTree, text: &str) -> Vec<(String, bool)> {
        let found = propose_next_page(page, with_text(page, text), &select);
        found.into_iter().map(|one| (one.selector, one.positional)).collect()
    }

    fn first(lines: &str, text: &str) -> (String, bool) {
        proposed(&page(lines), text).first().unwrap().clone()
    }

    /// The links of a page of three: the pages before and after, and the page that is shown.
    fn pages(shown: u8) -> PageTree {
        let mut lines = "html\n body\n  ul class=nav\n   li\n    a href=/home\n     \"Home\"\n  \
                         ul class=pagination\n"
            .to_owned();
        let mut item = |class: &str, page: u8, text: &str| {
            let item =
                format!("   li{class}\n    a href=?page={page}\n     span\n      \"{text}\"\n");
            lines.push_str(&item);
        };
        if shown > 1 {
            item("", shown.saturating_sub(1), "«");
        }
        item(" class=page-current", shown, "shown");
        if shown < 3 {
            item("", shown.saturating_add(1), "»");
        }
        page(&lines)
    }

    #[test]
    fn what_follows_the_current_page_is_proposed_before_positions() {
        for shown in [1, 2] {
            let page = pages(shown);
            let found = proposed(&page, "»");
            let expected = ("ul.pagination > li.page-current + li a".to_owned(), false);
            assert_eq!(found.first(), Some(&expected), "{found:?}");
            let others: Vec<_> = found.iter().skip(1).collect();
            assert!(!others.is_empty() && others.iter().all(|one| one.1), "{others:?}");
        }
        // It leads on from each page, and from the last one nowhere.
        let next = "ul.pagination > li.page-current + li a";
        for (shown, text) in [(1, Some("»")), (2, Some("»")), (3, None)] {
            let page = pages(shown);
            let texts = select(&page, 0, next).into_iter().map(|link| page.text_content(link));
            assert_eq!(texts.collect::<Vec<_>>(), text.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_an_element_means_is_proposed_first() {
        let one = |attributes: &str| {
            let lines = format!(
                "html\n body\n  a href=/a\n   \"Back\"\n  div\n   a {attributes}\n    \"Go\""
            );
            first(&lines, "Go")
        };
        let expected = |selector: &str| (selector.to_owned(), false);
        assert_eq!(one("rel=next href=/b"), expected("a[rel=\"next\"]"));
        assert_eq!(one("rel=nofollow+next href=/b"), expected("a[rel~=\"next\"]"));
        assert_eq!(one("aria-label=Next+page href=/b"), expected("a[aria-label=\"Next page\"]"));
        // Other accounts may have another language.
        let worded = one("aria-label=Next+page class=nav-next href=/b");
        assert_eq!(worded, expected("a.nav-next"));
        assert_eq!(one("title=Nächste+Seite href=/b"), expected("a[title=\"Nächste Seite\"]"));
        assert_eq!(one("aria-label=›"), expected("a[aria-label=\"›\"]"));
        assert_eq!(one("class=pagination-next"), expected("a.pagination-next"));
        // The next page has another number.
        let (selector, _) = one("title=Next:+page+2 href=/b");
        assert!(!selector.contains("title"), "{selector}");
        let around = "html\n body\n  ul\n   li class=previous\n    a href=?page=1\n     \"a\"\n   \
                      li class=next\n    a href=?page=3\n     \"b\"";
        assert_eq!(first(around, "b"), expected("li.next a"));
    }

    #[test]
    fn the_current_page_is_told_by_itself_or_by_what_is_in_it() {
        let list = |current: &str, rest: &str| format!("html\n body\n  nav\n   {current}\n{rest}");
        let flat =
            list("a aria-current=page href=?page=1", "    \"1\"\n   a href=?page=2\n    \"2\"");
        assert_eq!(first(&flat, "2"), ("a[aria-current=\"page\"] + a".to_owned(), false));
        let inside =
            list("li", "    a class=active\n     \"1\"\n   li\n    a href=?page=2\n     \"2\"");
        assert_eq!(first(&inside, "2"), ("li:has(.active) + li a".to_owned(), false));
        // The link with the sign is not beside the current page, but leads to the same address.
        let signed = list(
            "li class=active",
            "    a href=?page=1\n     \"1\"\n   li\n    a href=?page=2\n     \"2\"\n   li\n    \
             a href=?page=3\n     \"3\"\n   li\n    a href=?page=2\n     \"»\"",
        );
        assert_eq!(first(&signed, "»"), ("li.active + li a".to_owned(), false));
        // The last page does not follow the current one.
        let (selector, positional) = first(&signed, "3");
        assert!(positional && !selector.contains('+'), "{selector}");
    }

    #[test]
    fn a_name_in_the_language_of_the_page_is_marked() {
        let has_words = |name: &str| {
            let page = page(&format!("html\n body\n  a title={name} href=/b\n   \"Go\""));
            let found = propose_next_page(&page, with_text(&page, "Go"), &select);
            found.into_iter().find(|one| one.selector.contains("title")).unwrap().has_words
        };
        assert!(has_words("Weiter"));
        assert!(!has_words("»"));
    }

    #[test]
    fn what_also_finds_the_next_page_of_something_else_comes_after_what_does_not() {
        let list = |name: &str| {
            format!(
                "\n  div id={name}\n   ul class=pager\n    li class=next\n     \
                 a href=?{name}=2 rel=next\n      \"{name}\""
            )
        };
        let lists = page(&format!("html\n body{}{}", list("open"), list("done")));
        let found = proposed(&lists, "open");
        let selectors: Vec<_> = found.iter().map(|(selector, _)| selector.as_str()).collect();
        let limited = ["#open a[rel=\"next\"]", "#open li.next a"];
        assert_eq!(selectors.get(..2), Some(limited.as_slice()), "{found:?}");
        assert!(selectors.contains(&"a[rel=\"next\"]"), "{found:?}");
        assert_eq!(proposed(&lists, "done").first().unwrap().0, "#done a[rel=\"next\"]");
        // The same link twice leads to the same page.
        let twice = format!("html\n body{}{}", list("open"), list("open"));
        assert_eq!(first(&twice, "open"), ("a[rel=\"next\"]".to_owned(), false));
    }

    #[test]
    fn what_a_selector_is_limited_to_is_no_state() {
        let list = |classes: &str, text: &str| {
            format!("\n  div class={classes}\n   button class=next\n    \"{text}\"")
        };
        let lists = [list("selected+orders", "Go"), list("bills", "On")].concat();
        let (selector, _) = first(&format!("html\n body{lists}"), "Go");
        assert_eq!(selector, "div.orders button.next");
    }

    #[test]
    fn what_is_clicked_is_the_first_visible_one() {
        let lines =
            "html\n body\n  button class=next hidden\n   \"On\"\n  button class=next\n   \"Next\"";
        let found = proposed(&page(lines), "Next");
        assert_eq!(found.first(), Some(&("button.next".to_owned(), false)), "{found:?}");
        let found = proposed(&page(&lines.replace(" hidden", "")), "Next");
        assert!(found.iter().all(|(selector, _)| selector != "button.next"), "{found:?}");
    }

    #[test]
    fn links_whose_addresses_are_scripts_are_not_the_same() {
        for address in ["javascript:void(0)", "JavaScript:;", "#"] {
            let lines = format!(
                "html\n body\n  div class=slides\n   a class=next href={address}\n    \
                 \"slide\"\n  div class=orders\n   a class=next href={address}\n    \"page\""
            );
            let found = proposed(&page(&lines), "page");
            assert_eq!(found.first().unwrap().0, "div.orders a.next", "{address}: {found:?}");
            assert!(found.iter().all(|(selector, _)| selector != "a.next"), "{found:?}");
        }
    }

    #[test]
    fn what_has_the_links_in_both_directions_does_not_tell_the_next_page() {
        let lines = "html\n body\n  div class=prev-next\n   a href=?page=2 class=go\n    \"2\"";
        let found = proposed(&page(lines), "2");
        assert!(found.iter().all(|(_, positional)| *positional), "{found:?}");
        // The number of a page stands for another one there.
        assert!(found.contains(&("a.go".to_owned(), true)), "{found:?}");
        let others = "html\n body\n  p\n   a href=/b class=go\n    \"Go\"\n   a href=/c class=go\n    \"On\"";
        assert!(proposed(&page(others), "Go").contains(&("a.go".to_owned(), true)));
    }

    #[test]
    fn an_identifier_is_no_position() {
        let lines = "html\n body\n  nav\n   a class=current\n    \"1\"\n   a id=forward class=link\n    \"Go\"";
        let found = proposed(&page(lines), "Go");
        let expected = ("a.current + a".to_owned(), false);
        assert_eq!(found.first(), Some(&expected), "{found:?}");
        assert!(found.contains(&("#forward".to_owned(), false)), "{found:?}");
        assert!(found.contains(&("a.link".to_owned(), true)), "{found:?}");
    }

    #[test]
    fn a_button_that_adds_rows_is_proposed_as_it_is() {
        let lines = "html\n body\n  button class=load-more\n   \"More\"";
        assert_eq!(first(lines, "More"), ("button.load-more".to_owned(), false));
        let (selector, positional) = first("html\n body\n  button\n   \"More\"", "More");
        assert_eq!((selector.as_str(), positional), ("button", true));
    }

    #[test]
    fn what_leads_on_in_a_shadow_root_is_found_in_it() {
        let lines = "html\n body\n  my-list id=orders\n   #shadow\n    a rel=next href=?page=2\n     \"Go\"";
        assert_eq!(first(lines, "Go"), ("#orders >>> a[rel=\"next\"]".to_owned(), false));
    }
}
