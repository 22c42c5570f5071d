//! Proposals of lists: the rows that an element of a page or a member of a response belongs to.

use std::collections::{BTreeMap, BTreeSet};

use domain::workflow::{PageTree, Select};
use serde::{Deserialize, Serialize};

use crate::{
    columns::in_rows,
    draft::KnownValues,
    selectors::{has_known_value, identifier, mark_own, propose_selectors, steady_classes},
};

/// Rows in one element, and a value in each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListProposal {
    /// The place of the list.
    pub at: String,
    /// In a page, the selector of the rows in it.
    pub each: Option<String>,
    /// The place of the value in its row; empty for the row itself.
    pub member: String,
    /// How many rows there are now.
    #[serde(default)]
    pub rows: usize,
}

/// Elements around one that may be its row.
const MAX_ANCESTORS: usize = 30;
/// Elements that are rows by what they are.
const ROWS: &[&str] = &["tr", "li", "article"];
const ROW_ROLES: &[&str] = &["row", "listitem", "option", "article"];
/// Elements that are repeated within one row.
const CELLS: &[&str] = &["td", "th", "dt", "dd", "option", "br"];

/// Returns the list that an element is in the rows of, if there is one with at least two rows. `known` are the
/// values of the author's account: a place without them is preferred.
#[must_use]
pub fn propose_list(
    page: &PageTree,
    node: usize,
    known: &KnownValues,
    select: Select<'_>,
) -> Option<ListProposal> {
    let mut ancestors = Vec::new();
    let mut at = node;
    while !page.is_root(at) && ancestors.len() < MAX_ANCESTORS {
        ancestors.push(at);
        at = page.nodes.get(at)?.parent?;
    }
    let by_meaning = ancestors.iter().filter(|row| is_row(page, **row));
    let by_siblings = ancestors.iter().filter(|row| !is_row(page, **row));
    let mut rows = by_meaning.chain(by_siblings);
    rows.find_map(|row| rows_like(page, (*row, node), known, select))
}

fn is_row(page: &PageTree, node: usize) -> bool {
    page.nodes.get(node).is_some_and(|element| {
        let role = element.attributes.get("role").map(String::as_str);
        element.tag.as_deref().is_some_and(|tag| ROWS.contains(&tag))
            || role.is_some_and(|role| ROW_ROLES.contains(&role))
    })
}

fn rows_like(
    page: &PageTree,
    (row, node): (usize, usize),
    known: &KnownValues,
    select: Select<'_>,
) -> Option<ListProposal> {
    let element = page.nodes.get(row)?;
    let (tag, parent) = (element.tag.as_deref()?, element.parent?);
    if CELLS.contains(&tag) || page.is_root(parent) || is_label_and_value(page, row) {
        return None;
    }
    let name = identifier(tag);
    let classes = steady_classes(element);
    let with_class = classes.iter().map(|class| format!("{name}.{}", identifier(class)));
    // Rows of headings have other cells.
    let with_cells = (tag == "tr").then(|| "tr:has(> td)".to_owned());
    let mut selectors: Vec<_> = with_class.chain(with_cells).chain([name.clone()]).collect();
    selectors.sort_by_key(|selector| has_known_value(selector, known));
    let (place, each, rows) = places(page, parent).into_iter().find_map(|place| {
        let body = (place != parent).then(|| selectors.iter().map(|row| format!("tbody > {row}")));
        let candidates = selectors.iter().cloned().chain(body.into_iter().flatten());
        candidates.into_iter().find_map(|each| {
            let rows = select(page, place, &each);
            let is_list = rows.len() > 1
                && rows.contains(&row)
                && is_beside(page, &rows, parent)
                && !leaves_out_rows(page, &rows, row);
            is_list.then_some((place, each, rows))
        })
    })?;
    if !is_row(page, row) && are_label_and_value(page, &rows) {
        return None;
    }
    let found = in_rows(page, (place, rows.as_slice()), (row, node), known, select);
    let member = found.into_iter().find(|proposal| !proposal.hashed)?.selector;
    let mut found = propose_selectors(page, place, select);
    mark_own(&mut found, known);
    let at = found.into_iter().find(|proposal| !proposal.hashed)?.selector;
    Some(ListProposal { at, each: Some(each), member, rows: rows.len() })
}

/// Returns the elements that may be the place of rows whose parent is `parent`, the best one first. A
/// site may leave out the body of a table that has no rows, but not the table.
fn places(page: &PageTree, parent: usize) -> Vec<usize> {
    let table = page.nodes.get(parent).filter(|body| body.tag.as_deref() == Some("tbody"));
    let table = table.and_then(|body| body.parent).filter(|table| has_tag(page, *table, "table"));
    table.into_iter().chain([parent]).collect()
}

/// Returns whether all rows are in one element, or in bodies of the same table.
fn is_beside(page: &PageTree, rows: &[usize], parent: usize) -> bool {
    let around = |node: usize| page.nodes.get(node).and_then(|node| node.parent);
    let is_body = has_tag(page, parent, "tbody");
    rows.iter().all(|row| {
        let other = around(*row);
        let is_next = |body: usize| has_tag(page, body, "tbody") && around(body) == around(parent);
        other == Some(parent) || (is_body && other.is_some_and(is_next))
    })
}

/// Returns whether an element beside a row is none of the rows, but has the same elements in it: the class that
/// it lacks is that of a state, such as `unread`, or of each second row. The last one may be another row, such
/// as a sum.
fn leaves_out_rows(page: &PageTree, rows: &[usize], row: usize) -> bool {
    let Some(parent) = page.nodes.get(row).and_then(|node| node.parent) else { return false };
    let rows: BTreeSet<usize> = rows.iter().copied().collect();
    let tag = page.nodes.get(row).and_then(|node| node.tag.as_ref());
    let beside = elements_in(page, parent)
        .filter(|index| page.nodes.get(*index).and_then(|node| node.tag.as_ref()) == tag);
    let beside: Vec<_> = beside.collect();
    let others: BTreeSet<usize> =
        beside.split_last().map(|(_, others)| others).into_iter().flatten().copied().collect();
    let others: BTreeSet<usize> = others.difference(&rows).copied().collect();
    if others.is_empty() {
        return false;
    }
    let mut parts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for node in &page.nodes {
        let parent = node.parent.filter(|parent| *parent == row || others.contains(parent));
        let part = parent.zip(node.tag.as_deref());
        if let Some((parent, tag)) = part {
            parts.entry(parent).or_default().push(tag);
        }
    }
    let own = parts.get(&row).filter(|own| own.len() > 1);
    own.is_some_and(|own| others.iter().any(|other| parts.get(other) == Some(own)))
}

fn has_tag(page: &PageTree, node: usize, tag: &str) -> bool {
    page.nodes.get(node).is_some_and(|node| node.tag.as_deref() == Some(tag))
}

/// Returns whether a row has a label and its value alone, such as a row of a table with facts of one
/// thing.
fn is_label_and_value(page: &PageTree, row: usize) -> bool {
    let cells: Vec<_> = elements_in(page, row).collect();
    let [label, _] = cells.as_slice() else { return false };
    let text = page.text_content(*label);
    let is_label = ["label", "strong", "b"].iter().any(|tag| has_tag(page, *label, tag));
    // Rows of a table with headings may begin with a heading of their own.
    let is_heading = has_tag(page, *label, "th") && !has_headings(page, row);
    is_label || is_heading || text.trim_end().ends_with(':')
}

/// Returns whether two elements are a label and the value beside it rather than rows: rows of that few
/// have several parts each.
fn are_label_and_value(page: &PageTree, rows: &[usize]) -> bool {
    rows.len() == 2 && rows.iter().all(|row| texts_in(page, *row) < 2)
}

fn elements_in(page: &PageTree, parent: usize) -> impl Iterator<Item = usize> {
    let all = page.nodes.iter().enumerate();
    let inside = all.filter(move |(_, node)| node.parent == Some(parent) && node.tag.is_some());
    inside.map(|(index, _)| index)
}

fn texts_in(page: &PageTree, scope: usize) -> usize {
    let texts = page.descendants(scope).filter_map(|(_, node)| node.text.as_deref());
    texts.filter(|text| !text.trim().is_empty()).count()
}

/// Returns whether the table of a row has a row of headings.
fn has_headings(page: &PageTree, row: usize) -> bool {
    let mut at = row;
    while !has_tag(page, at, "table") {
        let parent = page.nodes.get(at).and_then(|node| node.parent);
        let Some(parent) = parent.filter(|parent| !page.is_root(*parent)) else { return false };
        at = parent;
    }
    let rows = page.descendants(at).filter(|(_, node)| node.tag.as_deref() == Some("tr"));
    rows.into_iter().any(|(other, _)| {
        let headings = elements_in(page, other).all(|cell| has_tag(page, cell, "th"));
        headings && elements_in(page, other).count() > 1
    })
}

/// Returns the list that a member of a JSON document is in the items of, by its JSON pointer: of
/// several, the outermost one with at least two items, or else the outermost one.
#[must_use]
pub fn propose_json_list(body: &serde_json::Value, pointer: &str) -> Option<ListProposal> {
    let at_slash = pointer.match_indices('/').map(|(at, _)| at);
    let ends: Vec<_> = at_slash.skip(1).chain([pointer.len()]).collect();
    let lists = ends.iter().filter_map(|end| {
        let (item, member) = pointer.split_at_checked(*end)?;
        let (list, _) = item.rsplit_once('/')?;
        let rows = body.pointer(list)?.as_array()?.len();
        let (at, member) = (list.to_owned(), member.to_owned());
        (rows > 0).then_some(ListProposal { at, each: None, member, rows })
    });
    let lists: Vec<_> = lists.collect();
    let chosen = lists.iter().position(|list| list.rows > 1).unwrap_or_default();
    lists.into_iter().nth(chosen)
}
