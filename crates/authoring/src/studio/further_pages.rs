//! Whether a page seems to have a next page of a list in it.

use std::collections::BTreeSet;

use domain::workflow::{PageNode, PageTree, Select, find_elements};

use super::{ChosenSource, Edit, Studio, paging::without_page};
use crate::{
    ancestors::with_ancestors,
    lists::ListProposal,
    next_page::{
        NEXT_WORDS, PREVIOUS_WORDS, after_current, classes, has_word, is_name_of_next, is_target,
        nearest, propose_next_page,
    },
};

/// Links and buttons beside those to other pages whose names are looked at.
const MAX_TARGETS: usize = 50;
/// Words that the name of what leads to the next page has at most, and such a name with a word for pages, as "Go to
/// the next page": others are sentences.
const MAX_NAME_WORDS: usize = 3;
const MAX_PAGE_NAME_WORDS: usize = 6;
/// Parts of words for pages, in lower case.
const PAGES: &[&str] =
    &["page", "pagina", "página", "pàgina", "seite", "sayfa", "sida", "side", "stron", "صفحة"];
/// Words of classes of what has the links to other pages of a list.
const PAGER_WORDS: &[&str] = &["page", "pager", "paginate", "pagination", "paginator", "paging"];
/// Words that a class for the next page may have beside: `next-appointment` is about something else.
const PLAIN_WORDS: &[&str] = &["btn", "button", "item", "link", "nav", "next"];

/// How the names of buttons that add rows begin, in lower case.
const MORE: &[&str] = &[
    "load more",
    "show more",
    "view more",
    "mehr anzeigen",
    "mehr laden",
    "weitere anzeigen",
    "weitere laden",
    "afficher plus",
    "charger plus",
    "voir plus",
    "cargar más",
    "mostrar más",
    "ver más",
    "carica altri",
    "mostra altri",
    "laad meer",
    "meer laden",
    "toon meer",
    "pokaż więcej",
    "załaduj więcej",
    "carregar mais",
    "mostrar mais",
    "daha fazla",
    "تحميل المزيد",
    "عرض المزيد",
];
/// Words of classes of what has other parts than pages of a list, each with a next one.
const OTHER_WORDS: &[&str] = &[
    "calendar",
    "carousel",
    "datepicker",
    "gallery",
    "lightbox",
    "slick",
    "slider",
    "slideshow",
    "stepper",
    "swiper",
    "tour",
    "wizard",
];

impl Studio {
    /// Returns the list in a page that an edit adds a column to, and the selector of what seems to lead to its
    /// next page. `None` if nothing does, or for other edits.
    pub(super) fn further_page_of(&self, edit: &Edit) -> Option<(String, String)> {
        let Edit::AddField {
            from: ChosenSource::Page { inspection, .. }, list: Some(list), ..
        } = edit
        else {
            return None;
        };
        let page = self.shared.state().inspection(*inspection)?;
        let next = self.select(|select| further_page(&page.tree, &list.rows, select))?;
        Some((list.name.clone(), next))
    }
}

/// Returns the selector of what seems to lead to the next page of a list in a page: by its relation, by a class
/// of it, or by what it is called where links to other pages are. `None` if nothing does, or if it is hidden or
/// cannot be pressed.
pub(super) fn further_page(
    page: &PageTree,
    list: &ListProposal,
    select: Select<'_>,
) -> Option<String> {
    let each = list.each.as_deref()?;
    let place = find_elements(page, 0, &list.at, select).first().copied()?;
    let rows: BTreeSet<usize> = select(page, place, each).into_iter().collect();
    let is_in_row = |node: usize| with_ancestors(page, node).any(|node| rows.contains(&node));
    let around: BTreeSet<usize> = with_ancestors(page, place).collect();
    // What is around the list as well says nothing of a link.
    let is_of_other = |node: usize| {
        let mut own = with_ancestors(page, node).take_while(|node| !around.contains(node));
        own.any(|index| {
            let mut classes = page.nodes.get(index).into_iter().flat_map(classes);
            classes.any(|class| has_word(class, OTHER_WORDS))
        })
    };
    // Those after the list first, and of those before it the nearest one: a menu may have many.
    let targets = (place..page.nodes.len()).chain((0..place).rev()).filter(|index| {
        is_target(page, *index)
            && is_usable(page, *index)
            && !is_in_row(*index)
            && !is_of_other(*index)
    });
    let targets: Vec<usize> = targets.collect();
    let is_related = |index: &&usize| page.nodes.get(**index).is_some_and(is_next_by_relation);
    let has_class = |index: &&usize| {
        let with_parent = nearest(page, **index).take(2);
        let mut nodes = with_parent.filter_map(|index| page.nodes.get(index));
        nodes.any(|node| classes(node).any(is_next_class))
    };
    let is_named = |index: &&usize| is_called_next(page, **index);
    let in_pager = || targets.iter().filter(|index| is_in_pager(page, **index)).take(MAX_TARGETS);
    let found = targets.iter().find(is_related).or_else(|| targets.iter().find(has_class));
    // A button near the list that adds rows to it.
    let adds_rows = |index: &&usize| {
        let mut near = nearest(page, **index);
        near.any(|node| around.contains(&node)) && is_called_more(page, **index)
    };
    let after = || targets.iter().filter(|index| **index > place).take(MAX_TARGETS);
    let found = found.or_else(|| in_pager().find(is_named)).or_else(|| after().find(adds_rows));
    if let Some(target) = found {
        let proposed = propose_next_page(page, *target, select).into_iter().next();
        return proposed.map(|first| first.selector);
    }
    // It is of the whole document, and cannot be pressed.
    let has_link = page.nodes.iter().any(|node| {
        node.tag.as_deref() == Some("link")
            && node.attributes.contains_key("href")
            && is_next_by_relation(node)
    });
    has_link.then(|| "link[rel~=\"next\"]".to_owned())
}

/// Returns whether a link or a button is visible and can be pressed.
fn is_usable(page: &PageTree, index: usize) -> bool {
    let Some(element) = page.nodes.get(index).filter(|node| node.visible) else { return false };
    let has = |name: &str| element.attributes.contains_key(name);
    let leads =
        element.tag.as_deref() != Some("a") || has("href") || has("role") || has("tabindex");
    let is_disabled = |node: &PageNode| {
        node.attributes.contains_key("disabled")
            || node.attributes.get("aria-disabled").is_some_and(|value| value == "true")
            || classes(node).any(|class| has_word(class, &["disabled"]))
    };
    let with_parent = nearest(page, index).take(2);
    leads && !with_parent.filter_map(|index| page.nodes.get(index)).any(is_disabled)
}

fn is_next_by_relation(node: &PageNode) -> bool {
    let relation = node.attributes.get("rel").map(String::as_str).unwrap_or_default();
    relation.split_ascii_whitespace().any(|word| word == "next")
}

/// Returns whether a class is that of what leads to the next page, such as `page-next`.
fn is_next_class(class: &str) -> bool {
    let is_next = has_word(class, NEXT_WORDS) && !has_word(class, PREVIOUS_WORDS);
    let lower = class.to_ascii_lowercase();
    let mut words = lower.split(['-', '_']).filter(|word| !word.is_empty());
    is_next && (has_word(class, PAGER_WORDS) || words.all(|word| PLAIN_WORDS.contains(&word)))
}

/// Returns whether an element is among links to other pages, or its address says which page of a list is wanted.
fn is_in_pager(page: &PageTree, index: usize) -> bool {
    let address = page.nodes.get(index).and_then(|node| node.attributes.get("href"));
    let has_page = address.is_some_and(|address| without_page(address) != *address);
    let around = nearest(page, index);
    has_page
        || around.filter_map(|index| page.nodes.get(index)).any(|node| {
            node.tag.as_deref() == Some("nav")
                || node.attributes.get("role").is_some_and(|role| role == "navigation")
                || classes(node).any(|class| has_word(class, PAGER_WORDS))
        })
}

/// Returns whether an element among links to other pages is called the next one, or has the number of the second
/// page and follows the page that is shown.
fn is_called_next(page: &PageTree, index: usize) -> bool {
    let text = page.text_content(index);
    let text = text.trim();
    let attribute = |name: &str| page.nodes.get(index)?.attributes.get(name).map(String::as_str);
    let names = [Some(text), attribute("aria-label"), attribute("title")];
    let is_name = |name: &str| {
        let lower = name.to_lowercase();
        let has_page = PAGES.iter().any(|page| lower.contains(page));
        let max = if has_page { MAX_PAGE_NAME_WORDS } else { MAX_NAME_WORDS };
        is_name_of_next(name) && name.split_whitespace().count() <= max
    };
    names.into_iter().flatten().any(is_name)
        || (text == "2" && !after_current(page, index).is_empty())
}

/// Returns whether an element is called what a button is that adds rows, such as "Load more orders".
fn is_called_more(page: &PageTree, index: usize) -> bool {
    let text = page.text_content(index).to_lowercase();
    let text = text.trim();
    MORE.iter().any(|more| text.starts_with(more))
        && text.split_whitespace().count() <= MAX_PAGE_NAME_WORDS
}
