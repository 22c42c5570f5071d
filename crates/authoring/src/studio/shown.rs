//! Whether a page is the one that a node reads, and the lists of the definition that are read on a page.

use std::collections::BTreeMap;

use domain::workflow::{
    Definition, Extraction, FieldType, Node, PageTree, Select, Source, find_elements,
};
use serde::Serialize;

use super::{Studio, addresses::offered_values, paging::without_page, readings::chosen};
use crate::{
    ancestors::with_ancestors,
    draft::{KnownValues, can_be, page_address, without_braces},
    signals::KnownPage,
};

/// How a page compares with the one that a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownPage {
    /// It is the same page, or the definition does not tell which one the node reads.
    Same,
    /// The addresses differ only in which page of a list is wanted.
    OtherPart,
    Other,
}

impl ShownPage {
    /// Compares the page at `url` with the one that a node reads. `known` are the values that addresses can
    /// have.
    pub(super) fn of(definition: &Definition, node: &str, url: &str, known: &KnownValues) -> Self {
        let Some(own) = page_address(definition, node) else { return Self::Same };
        let (own, url) = (comparable(&own), comparable(&without_braces(url)));
        if can_be(&own, &url, known) {
            return Self::Same;
        }
        let is_part = can_be(&without_page(&own), &without_page(&url), known);
        if is_part { Self::OtherPart } else { Self::Other }
    }

    /// As [`Self::of`] for the node that reads a list in a page; `None` if there is no such list.
    pub(super) fn of_list(
        definition: &Definition,
        list: &str,
        url: &str,
        known: &KnownValues,
    ) -> Option<Self> {
        let (node, _) = read_in_page(definition, list)?;
        Some(Self::of(definition, node, url, known))
    }
}

/// Returns the address of the page that a node reads if the page at `url` is another one. Where what it reads
/// is there, what follows `?` is not compared: sites add parameters of their own to an address that is opened.
pub(super) fn other_page(
    definition: &Definition,
    (node, is_there): (&str, bool),
    url: &str,
    known: &KnownValues,
) -> Option<String> {
    let own = page_address(definition, node)?;
    let (path, shown) = (without_query(&own), without_query(&without_braces(url)));
    let is_other = ShownPage::of(definition, node, url, known) == ShownPage::Other;
    (is_other && (!is_there || !can_be(&path, &shown, known))).then_some(own)
}

/// Returns an address without what makes no difference to the page: a place in it, a slash at the end of its path
/// and the order of its parameters.
fn comparable(url: &str) -> String {
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut parameters: Vec<_> = query.split('&').filter(|one| !one.is_empty()).collect();
    parameters.sort_unstable();
    let start = if parameters.is_empty() { "" } else { "?" };
    let fragment = if is_page(fragment) { fragment } else { "" };
    format!("{}{start}{}{fragment}", path.trim_end_matches('/'), parameters.join("&"))
}

/// Returns whether a fragment is the address of a page within a single-page application.
fn is_page(fragment: &str) -> bool {
    fragment.starts_with("#/") || fragment.starts_with("#!/")
}

/// Returns an address without its query and without its fragment, unless that is the address of a page within a
/// single-page application.
fn without_query(url: &str) -> String {
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let (path, _) = url.split_once('?').unwrap_or((url, ""));
    let fragment = if is_page(fragment) { fragment } else { "" };
    format!("{}{fragment}", without_page(path).trim_end_matches('/'))
}

/// A list whose next page an element of a page can lead to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PagedList {
    name: String,
    /// Whether it is read on the page of the element. Otherwise, the addresses differ in the page of the list
    /// that is wanted.
    is_here: bool,
}

impl Studio {
    /// Returns the lists whose next page an element can lead to.
    pub(super) fn paged_lists(&self, page: &KnownPage, node: usize) -> Vec<PagedList> {
        let (definition, known) = {
            let state = self.shared.state();
            let Some(definition) = state.definition.clone() else { return vec![] };
            let known = offered_values(&definition, &state);
            (definition, known)
        };
        self.select(|select| paged_lists(&definition, (page, node), &known, select))
    }
}

/// Returns the lists whose next page the element at a node of a page can lead to: those that are read on the
/// page, the one whose rows are nearest to the element first, and then those of another part of the page.
pub(super) fn paged_lists(
    definition: &Definition,
    (page, node): (&KnownPage, usize),
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<PagedList> {
    let around = with_ancestors(&page.tree, node).enumerate();
    let around: BTreeMap<usize, usize> = around.map(|(steps, index)| (index, steps)).collect();
    let lists = definition.ordered_output().filter(|(_, field)| field.kind == FieldType::List);
    let lists = lists.filter_map(|(name, _)| {
        let (reads, from) = read_in_page(definition, name)?;
        let is_here = match ShownPage::of(definition, reads, &page.url, known) {
            ShownPage::Same => true,
            ShownPage::OtherPart => false,
            ShownPage::Other => return None,
        };
        let distance = distance(&page.tree, (node, &around), from, select);
        Some(((!is_here, distance), PagedList { name: name.clone(), is_here }))
    });
    let mut lists: Vec<_> = lists.collect();
    // Stable: of lists that are not on the page, the order of the definition stays.
    lists.sort_by_key(|(order, _)| *order);
    lists.into_iter().map(|(_, list)| list).collect()
}

/// Returns the node that reads a list in a page, and where; `None` if none does.
fn read_in_page<'a>(
    definition: &'a Definition,
    list: &str,
) -> Option<(&'a String, &'a Extraction)> {
    definition.output.get(list).filter(|field| field.kind == FieldType::List)?;
    definition.nodes.iter().find_map(|(name, node)| {
        let Node::Collect { via: Source::Dom {}, fields, .. } = node else { return None };
        Some((name, fields.get(list)?))
    })
}

/// Returns how far the rows of a list are from an element: the steps from the element to what is around
/// both, and then the nodes between them. `around` has these steps for all that is around the element.
fn distance(
    page: &PageTree,
    (node, around): (usize, &BTreeMap<usize, usize>),
    from: &Extraction,
    select: Select<'_>,
) -> (usize, usize) {
    let place = chosen(&find_elements(page, 0, &from.at, select), from.element);
    let rows = place.zip(from.each.as_deref());
    let rows = rows.map(|(place, each)| find_elements(page, place, each, select));
    let rows = rows.unwrap_or_default();
    let ends = [rows.first().copied().or(place), rows.last().copied().or(place)];
    let from_element = |end: usize| {
        let steps = with_ancestors(page, end).find_map(|index| around.get(&index).copied())?;
        Some((steps, end.abs_diff(node)))
    };
    let nearest = ends.into_iter().flatten().filter_map(from_element).min();
    nearest.unwrap_or((usize::MAX, usize::MAX))
}
