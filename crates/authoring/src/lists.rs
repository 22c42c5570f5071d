//! Proposals of lists: the rows that an element of a page or a member of a response belongs to.

use domain::workflow::{PageTree, Select};
use serde::{Deserialize, Serialize};

use crate::selectors::{identifier, in_root, propose_selectors, steady_classes};

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

/// Returns the list that an element is in the rows of, if there is one with at least two rows.
#[must_use]
pub fn propose_list(page: &PageTree, node: usize, select: Select<'_>) -> Option<ListProposal> {
    let mut ancestors = Vec::new();
    let mut at = node;
    while !page.is_root(at) && ancestors.len() < MAX_ANCESTORS {
        ancestors.push(at);
        at = page.nodes.get(at)?.parent?;
    }
    let by_meaning = ancestors.iter().filter(|row| is_row(page, **row));
    let by_siblings = ancestors.iter().filter(|row| !is_row(page, **row));
    by_meaning.chain(by_siblings).find_map(|row| rows_like(page, *row, node, select))
}

fn is_row(page: &PageTree, node: usize) -> bool {
    page.nodes.get(node).is_some_and(|element| {
        let role = element.attributes.get("role").map(String::as_str);
        element.tag.as_deref().is_some_and(|tag| ROWS.contains(&tag))
            || role.is_some_and(|role| ROW_ROLES.contains(&role))
    })
}

fn rows_like(page: &PageTree, row: usize, node: usize, select: Select<'_>) -> Option<ListProposal> {
    let element = page.nodes.get(row)?;
    let (tag, parent) = (element.tag.as_deref()?, element.parent?);
    if CELLS.contains(&tag) || page.is_root(parent) {
        return None;
    }
    let member = if row == node {
        String::new()
    } else {
        in_root(page, (row, node), select).into_iter().next()?.selector
    };
    let tag = identifier(tag);
    let classes = steady_classes(element);
    let with_class = classes.iter().map(|class| format!("{tag}.{}", identifier(class)));
    // Rows of headings have other cells.
    let with_cells = (tag == "tr").then(|| "tr:has(> td)".to_owned());
    let selectors = with_class.chain(with_cells).chain([tag.clone()]);
    let each = selectors.into_iter().find(|selector| {
        let found = select(page, parent, selector);
        let is_child = |row: &usize| page.nodes.get(*row).is_some_and(|r| r.parent == Some(parent));
        found.len() > 1 && found.contains(&row) && found.iter().all(is_child)
    })?;
    let rows = select(page, parent, &each).len();
    let at = propose_selectors(page, parent, select).into_iter().next()?.selector;
    Some(ListProposal { at, each: Some(each), member, rows })
}

/// Returns the list that a member of a JSON document is in the items of, by its JSON pointer.
#[must_use]
pub fn propose_json_list(body: &serde_json::Value, pointer: &str) -> Option<ListProposal> {
    let at_slash = pointer.match_indices('/').map(|(at, _)| at);
    let ends: Vec<_> = at_slash.skip(1).chain([pointer.len()]).collect();
    ends.iter().find_map(|end| {
        let (item, member) = pointer.split_at_checked(*end)?;
        let (list, _) = item.rsplit_once('/')?;
        let rows = body.pointer(list)?.as_array()?.len();
        let (at, member) = (list.to_owned(), member.to_owned());
        (rows > 0).then_some(ListProposal { at, each: None, member, rows })
    })
}
