//! Which elements of a page are in the rows of a list. What is in a row is there for accounts with rows only.

use std::collections::BTreeMap;

use domain::workflow::{PageNode, PageTree};

use crate::{
    ancestors::mark_around,
    selectors::{EXITS, steady_classes},
    signals::MARKS,
};

/// Tags of rows, and those around them. The only row of a list is one as well.
const ROWS: &[(&str, &[&str])] = &[("tr", &["table", "tbody"]), ("li", &["ul", "ol", "menu"])];
/// The same by their role.
const ROW_ROLES: &[&str] = &["row", "listitem"];
/// Tags of other elements that are rows, such as cards, if there are several alike.
const REPEATED: &[&str] = &["a", "article", "details", "div", "dl", "figure", "section"];
/// What a row of a list never has in it: around these, rows are a part of the layout.
const LANDMARKS: &[&str] = &["main", "nav"];
/// What is the same for each account.
const NAVIGATION_TAGS: &[&str] = &["footer", "header", "nav"];
const NAVIGATION_ROLES: &[&str] =
    &["banner", "contentinfo", "menu", "menubar", "navigation", "tablist", "toolbar"];
/// Words of classes and identifiers of what is the same for each account.
const NAVIGATION_WORDS: &[&str] =
    &["breadcrumb", "breadcrumbs", "dropdown", "menu", "nav", "navbar", "navigation", "tabs"];
/// Words of classes of buttons, which are beside one another on pages without lists, too.
const BUTTON_WORDS: &[&str] = &["btn", "button"];
/// What navigation never has in it. Names of a whole page, such as `nav-open`, have words of navigation, too.
const CONTENT: &[&str] = &["body", "h1", "main", "table"];
/// Types of form fields in which nothing is typed.
const NOT_TYPED: &[&str] = &["button", "checkbox", "hidden", "image", "radio", "reset", "submit"];

/// Which nodes of a page are rows of a list, or in one.
pub(crate) struct Rows {
    within: Vec<bool>,
}

/// What is in the nodes of a page.
struct Contents<'a> {
    /// Of each node, whether there is a landmark in it.
    layout: Vec<bool>,
    /// Of each node, whether there is a title or a link that signs out in it. Pages have one of them, and rows
    /// may have one each, such as those of devices.
    single: Vec<bool>,
    /// Of each node, whether there is what navigation never has in it.
    content: Vec<bool>,
    /// Of each node, whether there is a form field in it in which something is typed.
    fields: Vec<bool>,
    labels: Vec<bool>,
    /// Of each node, the tags of its children.
    children: Vec<Vec<&'a str>>,
}

impl Rows {
    /// Looks at each node of a page a few times: pages have up to 20,000 of them.
    pub(crate) fn of(page: &PageTree) -> Self {
        let contents = Contents::of(page).without_repeated(page);
        let kinds: Vec<_> = (0..page.nodes.len()).map(|at| kind_of(page, at, &contents)).collect();
        let mut counts: BTreeMap<&(usize, String), usize> = BTreeMap::new();
        for kind in kinds.iter().flatten() {
            let count = counts.entry(kind).or_default();
            *count = count.saturating_add(1);
        }
        let is_repeated = |at: usize| {
            let kind = kinds.get(at).and_then(Option::as_ref);
            kind.and_then(|kind| counts.get(kind)).is_some_and(|count| *count > 1)
        };
        let mut navigation: Vec<bool> = Vec::with_capacity(page.nodes.len());
        let mut within: Vec<bool> = Vec::with_capacity(page.nodes.len());
        for (at, node) in page.nodes.iter().enumerate() {
            let around = |known: &[bool]| {
                node.parent.and_then(|parent| known.get(parent).copied()).unwrap_or_default()
            };
            let is_named = is_named_navigation(node) && contents.content.get(at) != Some(&true);
            let is_navigation = around(&navigation) || is_navigation(node) || is_named;
            let is_row = !is_navigation
                && !contents.is_layout(at)
                && (is_row_by_itself(page, node, at, &contents) || is_repeated(at));
            within.push(around(&within) || is_row);
            navigation.push(is_navigation);
        }
        Self { within }
    }

    /// Returns whether a node is a row of a list, or in one.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.within.get(at) == Some(&true)
    }
}

impl<'a> Contents<'a> {
    fn of(page: &'a PageTree) -> Self {
        let none = vec![false; page.nodes.len()];
        let mut contents = Self {
            layout: none.clone(),
            single: none.clone(),
            content: none.clone(),
            fields: none.clone(),
            labels: none,
            children: vec![vec![]; page.nodes.len()],
        };
        for (at, node) in page.nodes.iter().enumerate() {
            let Some(tag) = node.tag.as_deref() else { continue };
            let siblings = node.parent.and_then(|parent| contents.children.get_mut(parent));
            if let Some(siblings) = siblings {
                siblings.push(tag);
            }
            if LANDMARKS.contains(&tag) {
                mark_around(page, &mut contents.layout, at);
            }
            if tag == "h1" || is_exit(node) {
                mark_around(page, &mut contents.single, at);
            }
            if CONTENT.contains(&tag) {
                mark_around(page, &mut contents.content, at);
            }
            if is_typed(node, tag) {
                mark_around(page, &mut contents.fields, at);
            }
            if tag == "label" {
                mark_around(page, &mut contents.labels, at);
            }
        }
        contents
    }

    /// Returns whether a node is a part of the layout, or of a form, rather than a row.
    fn is_layout(&self, at: usize) -> bool {
        let has = |known: &[bool]| known.get(at) == Some(&true);
        has(&self.layout) || has(&self.single) || (has(&self.fields) && has(&self.labels))
    }

    /// Has elements that are beside others alike with a title or a link that signs out be rows.
    fn without_repeated(self, page: &PageTree) -> Self {
        let place = |at: usize| {
            let node = page.nodes.get(at)?;
            Some((node.parent?, node.tag.as_deref()?))
        };
        let marked = |at: &usize| self.single.get(*at) == Some(&true);
        let mut counts: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for place in (0..page.nodes.len()).filter(marked).filter_map(place) {
            let count = counts.entry(place).or_default();
            *count = count.saturating_add(1);
        }
        let is_only = |at: usize| place(at).and_then(|at| counts.get(&at)) == Some(&1);
        let single = (0..page.nodes.len()).map(|at| marked(&at) && is_only(at)).collect();
        Self { single, ..self }
    }

    fn children(&self, at: usize) -> &[&'a str] {
        self.children.get(at).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns what the elements have in common that are rows if there are several of them; `None` for one
/// that is none.
fn kind_of(page: &PageTree, at: usize, contents: &Contents<'_>) -> Option<(usize, String)> {
    let node = page.nodes.get(at)?;
    let (tag, parent) = (node.tag.as_deref()?, node.parent?);
    // Those with a hyphen are elements of the site's own.
    if !REPEATED.contains(&tag) && !tag.contains('-') {
        return None;
    }
    let mut classes = steady_classes(node);
    if tag == "a" && classes.iter().any(|class| has_word(class, BUTTON_WORDS)) {
        return None;
    }
    classes.sort_unstable();
    let children = contents.children(at);
    // Elements without a class are alike if the same is in them.
    let alike = match (classes.as_slice(), children) {
        ([], []) => return None,
        ([], children) => format!("{tag} > {}", children.join(" ")),
        (classes, _) => format!("{tag}.{}", classes.join(".")),
    };
    Some((parent, alike))
}

/// Returns whether an element is a row also if there is no other one.
fn is_row_by_itself(page: &PageTree, node: &PageNode, at: usize, contents: &Contents<'_>) -> bool {
    let attribute = |name: &str| node.attributes.get(name).map(String::as_str);
    if attribute("role").is_some_and(|role| ROW_ROLES.contains(&role)) {
        return true;
    }
    let Some(tag) = node.tag.as_deref() else { return false };
    let around = node.parent.and_then(|parent| page.nodes.get(parent)?.tag.as_deref());
    let is_row = |(row, parents): &(&str, &[&str])| {
        *row == tag && around.is_some_and(|tag| parents.contains(&tag))
    };
    // The row with the headings of the columns is there without other rows.
    ROWS.iter().any(is_row) && (tag != "tr" || contents.children(at).contains(&"td"))
}

/// Returns whether an element is a part of the page that is the same for each account.
fn is_navigation(node: &PageNode) -> bool {
    let role = node.attributes.get("role").map(String::as_str).unwrap_or_default();
    node.tag.as_deref().is_some_and(|tag| NAVIGATION_TAGS.contains(&tag))
        || NAVIGATION_ROLES.contains(&role)
}

/// Returns whether an element is such a part by its name, unless it has the content of the page in it.
fn is_named_navigation(node: &PageNode) -> bool {
    let mut names = ["id", "class"].iter().filter_map(|name| node.attributes.get(*name));
    names.any(|name| has_word(name, NAVIGATION_WORDS))
}

/// Returns whether a name has one of some words, with neither a letter nor a digit beside it.
fn has_word(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

/// Returns whether an element seems to sign out.
fn is_exit(node: &PageNode) -> bool {
    MARKS.iter().any(|name| {
        let value = node.attributes.get(*name).map(|value| value.to_ascii_lowercase());
        value.is_some_and(|value| EXITS.iter().any(|exit| value.contains(exit)))
    })
}

/// Returns whether something is typed or chosen in an element.
fn is_typed(node: &PageNode, tag: &str) -> bool {
    let kind = node.attributes.get("type").map_or("text", String::as_str).to_ascii_lowercase();
    matches!(tag, "select" | "textarea") || (tag == "input" && !NOT_TYPED.contains(&kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::page;

    /// Returns whether the element with the identifier `it` is in a row.
    fn is_in_row(lines: &str) -> bool {
        let page = page(&format!("html\n body\n{lines}"));
        let is_it = |node: &PageNode| node.attributes.get("id").is_some_and(|id| id == "it");
        Rows::of(&page).has(page.nodes.iter().position(is_it).unwrap())
    }

    #[test]
    fn what_is_in_the_row_of_a_list_is_told() {
        assert!(is_in_row("  table\n   tbody\n    tr\n     td\n      a id=it"), "the only row");
        assert!(is_in_row("  ul class=changes\n   li\n    a id=it"), "the only item");
        assert!(is_in_row("  div role=listitem\n   a id=it"));
        let cards = "  div class=card+active\n   a id=it\n  div class=card\n   a";
        assert!(is_in_row(cards), "a class of a state makes no difference");
        assert!(is_in_row("  a class=item id=it\n  a class=item"));
        assert!(is_in_row("  div\n   b id=it\n   a\n  div\n   b\n   a"), "the same is in them");
        let menu =
            "  table\n   tr\n    td\n     div class=dropdown\n      ul\n       li\n        a id=it";
        assert!(is_in_row(menu), "the menu of a row");
    }

    #[test]
    fn rows_may_have_a_title_or_sign_out_each() {
        let devices = "  ul class=devices\n   li\n    b id=it\n    a href=/devices/1/logout\n   li\n    b\n    \
            a href=/devices/2/logout";
        assert!(is_in_row(devices));
        let posts = "  article class=post\n   h1\n    a id=it\n  article class=post\n   h1\n    a";
        assert!(is_in_row(posts));
        let single = "  article class=post\n   h1\n    a id=it\n  article class=post\n   h2\n    a";
        assert!(!is_in_row(single), "the title of the page");
    }

    #[test]
    fn a_page_whose_name_has_a_word_of_navigation_has_rows() {
        let page = page("html\n body class=nav-open\n  ul\n   li\n    a id=it");
        assert!(Rows::of(&page).has(5), "the page itself");
        let table = "   table\n    tr\n     td\n      a id=it";
        for around in ["div id=tabs", "div class=layout-navbar-fixed"] {
            assert!(is_in_row(&format!("  {around}\n{table}")), "{around}");
            let list = "   h1\n   ul\n    li\n     a id=it";
            assert!(is_in_row(&format!("  {around}\n{list}")), "{around}");
        }
        assert!(!is_in_row("  div id=tabs\n   ul\n    li\n     a id=it"), "the tabs alone");
    }

    #[test]
    fn what_each_account_has_is_in_no_row() {
        assert!(!is_in_row("  table\n   thead\n    tr\n     th id=it"));
        assert!(!is_in_row("  table\n   tr\n    th id=it"), "headings without a section");
        assert!(!is_in_row("  table id=it\n   tr\n    td"));
        assert!(!is_in_row("  nav\n   ul\n    li\n     a id=it\n    li\n     a"));
        let menu = "  div class=navbar-nav\n   ul\n    li class=nav-item\n     a id=it";
        assert!(!is_in_row(menu));
        assert!(!is_in_row("  ul class=links\n   li\n    a id=it href=/logout"), "it signs out");
        let forms =
            "  div class=mb-3\n   label\n   input id=it\n  div class=mb-3\n   label\n   input";
        assert!(!is_in_row(forms), "the fields of a form");
        let layout = "  table\n   tr\n    td\n     h1\n     a id=it";
        assert!(!is_in_row(layout), "a table for the layout");
        assert!(!is_in_row("  div class=card\n   a id=it\n  div class=other\n   a"));
        assert!(!is_in_row("  div\n   b id=it\n  div\n   a"));
        assert!(!is_in_row("  a class=btn+btn-light id=it\n  a class=btn+btn-light"));
    }
}
