//! Proposals of selectors for a column of a list: those that find the value in most rows, and in the
//! same cell, come first.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use domain::workflow::{PageTree, Select, find_elements};
use serde::Serialize;

use crate::{
    ancestors::{ancestors, with_ancestors},
    draft::KnownValues,
    lists::ListProposal,
    selectors::{
        has_known_value, in_row, is_address, is_numbered, is_positional, numbered_classes,
        steady_classes, without_number,
    },
};

/// Selectors that are proposed for a column.
const MAX_PROPOSALS: usize = 6;
/// Columns of a table.
const MAX_COLUMNS: usize = 200;
/// Rows that a cell of a table spans at most (HTML Standard, section 4.9.11).
const MAX_ROWSPAN: usize = 65_534;

/// A selector of a value in the rows of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ColumnProposal {
    /// Empty for the row itself.
    pub selector: String,
    /// The number of rows in which it matches an element.
    pub found: usize,
    /// The number of rows in which the first match is in another cell than in the chosen row.
    pub elsewhere: usize,
    /// Whether it has a class that a program seems to have made up.
    pub hashed: bool,
    /// Whether it counts elements.
    pub positional: bool,
    /// Whether it has a word that equals a value of the author's account.
    pub may_be_own: bool,
}

/// Returns at most six selectors for the value of an element in the rows of a list around it, the best
/// one first; none if the list is not around it. `known` are the values of the author's account.
#[must_use]
pub fn propose_columns(
    page: &PageTree,
    node: usize,
    list: &ListProposal,
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<ColumnProposal> {
    let place = find_elements(page, 0, &list.at, select).first().copied();
    let Some((place, each)) = place.zip(list.each.as_deref()) else { return vec![] };
    let rows = select(page, place, each);
    let row = with_ancestors(page, node).find(|row| rows.contains(row));
    let Some(row) = row else { return vec![] };
    in_rows(page, (place, rows.as_slice()), (row, node), known, select)
}

/// Returns selectors for the element at `node` in `row`, which is one of the rows in a place.
pub(crate) fn in_rows(
    page: &PageTree,
    (place, rows): (usize, &[usize]),
    (row, node): (usize, usize),
    known: &KnownValues,
    select: Select<'_>,
) -> Vec<ColumnProposal> {
    if row == node {
        let whole = ColumnProposal {
            selector: String::new(),
            found: rows.len(),
            elsewhere: 0,
            hashed: false,
            positional: false,
            may_be_own: false,
        };
        return vec![whole];
    }
    let cells = Cells::new(page);
    let Some(cell) = cells.around(row, node) else { return vec![] };
    let rows: BTreeSet<usize> = rows.iter().copied().collect();
    let mut seen = BTreeSet::new();
    let candidates = in_row(page, (row, node), cell.node, select);
    let candidates = candidates.into_iter().filter(|(selector, _)| seen.insert(selector.clone()));
    let tried = candidates.filter_map(|(selector, hashed)| {
        // All rows at once: a selector says nothing of where its search begins.
        let matches = by_row(page, &rows, select(page, place, &selector));
        if matches.get(&row)?.first() != Some(&node) {
            return None;
        }
        let is_there = |(row, found): &(&usize, &Vec<usize>)| {
            let first = found.first().and_then(|first| cells.around(**row, *first));
            first.is_some_and(|other| cells.are_same(&cell, &other))
        };
        let there = matches.iter().filter(is_there).count();
        let alone = matches.iter().filter(|entry| entry.1.len() == 1 && is_there(entry)).count();
        let proposal = ColumnProposal {
            found: matches.len(),
            elsewhere: matches.len().saturating_sub(there),
            hashed,
            positional: is_positional(&selector),
            may_be_own: has_known_value(&selector, known),
            selector,
        };
        Some((proposal, alone, there))
    });
    // The value of an attribute or the number of a class that differs from row to row tells a row, and not a
    // column.
    let is_column = |proposal: &ColumnProposal| {
        let is_steady = proposal.found == rows.len() && proposal.elsewhere == 0;
        let is_of_one_row =
            proposal.found < 2 && numbered_classes(&proposal.selector).any(is_numbered);
        let is_of_some_rows = || {
            let mut classes = numbered_classes(&proposal.selector);
            classes.any(|class| cells.differs_by_row(&rows, &cell, class))
        };
        let has_attribute = proposal.selector.contains(['[', '#']);
        !is_of_one_row
            && (!has_attribute || (is_steady && !proposal.may_be_own))
            && !is_of_some_rows()
    };
    let mut tried: Vec<_> = tried.filter(|(proposal, ..)| is_column(proposal)).collect();
    // Stable: within each group, the order of preference stays.
    tried.sort_by_key(|(proposal, alone, there)| {
        let is_last = (proposal.may_be_own, is_address(&proposal.selector), proposal.hashed);
        // Of two that find as many, one that finds nothing in a row is better than one that finds another
        // cell there.
        (is_last, Reverse(*alone), proposal.elsewhere, Reverse(*there))
    });
    tried.into_iter().map(|(proposal, ..)| proposal).take(MAX_PROPOSALS).collect()
}

/// Returns the elements in each of the rows that has some, in document order.
fn by_row(
    page: &PageTree,
    rows: &BTreeSet<usize>,
    found: Vec<usize>,
) -> BTreeMap<usize, Vec<usize>> {
    let mut matches: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in found {
        for row in ancestors(page, node).filter(|node| rows.contains(node)) {
            matches.entry(row).or_default().push(node);
        }
    }
    matches
}

/// The first element below a row, on the way to an element in it, that has others beside it or is a cell of
/// a table.
struct Cell {
    node: usize,
    /// The positions of the elements from the row to it.
    path: Vec<usize>,
}

/// The places of elements among those beside them.
pub(crate) struct Cells<'a> {
    page: &'a PageTree,
    /// By the index of an element: how many are before it in its parent; of a cell of a table, the number of
    /// its column, from 0.
    position: Vec<usize>,
    /// By the index of a node: the elements in it.
    elements: Vec<Vec<usize>>,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(page: &'a PageTree) -> Self {
        let mut position = vec![0_usize; page.nodes.len()];
        let mut elements = vec![vec![]; page.nodes.len()];
        for (index, node) in page.nodes.iter().enumerate().filter(|(_, node)| node.tag.is_some()) {
            let beside = node.parent.and_then(|parent| elements.get_mut(parent));
            let (Some(beside), Some(place)) = (beside, position.get_mut(index)) else { continue };
            *place = beside.len();
            beside.push(index);
        }
        let mut cells = Self { page, position, elements };
        cells.number_columns();
        cells
    }

    /// Returns the number of the column of a cell of a table, from 0: the first one of several that it spans.
    pub(crate) fn column(&self, cell: usize) -> Option<usize> {
        self.position.get(cell).copied()
    }

    /// Gives the cells of tables the numbers of their columns, since a cell may span several columns and rows.
    fn number_columns(&mut self) {
        // By what the rows are in: the number of further rows in which each column is taken.
        let mut taken_in: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, element) in self.page.nodes.iter().enumerate() {
            let section = element.parent.filter(|_| element.tag.as_deref() == Some("tr"));
            let Some(section) = section else { continue };
            let taken = taken_in.entry(section).or_default();
            let mut later: Vec<_> = taken.iter().map(|rows| rows.saturating_sub(1)).collect();
            let mut column = 0_usize;
            for cell in self.elements.get(row).into_iter().flatten() {
                while taken.get(column).is_some_and(|rows| *rows > 0) {
                    column = column.saturating_add(1);
                }
                if let Some(place) = self.position.get_mut(*cell) {
                    *place = column;
                }
                let end = column.saturating_add(columns_of(self.page, *cell)).min(MAX_COLUMNS);
                let rows = spanned(self.page, *cell, "rowspan");
                let rows = if rows == 0 { MAX_ROWSPAN } else { rows.min(MAX_ROWSPAN) };
                if rows > 1 && later.len() < end {
                    later.resize(end, 0);
                }
                for place in later.iter_mut().take(end).skip(column).filter(|_| rows > 1) {
                    *place = rows.saturating_sub(1);
                }
                column = end.max(column.saturating_add(1));
            }
            *taken = later;
        }
    }

    /// Returns the cell of an element in a row; `None` if it is not in the row.
    fn around(&self, row: usize, node: usize) -> Option<Cell> {
        let mut way = vec![node];
        for parent in ancestors(self.page, node) {
            if parent == row {
                break;
            }
            way.push(parent);
        }
        let outermost = self.page.nodes.get(way.last().copied()?)?;
        if outermost.parent != Some(row) {
            return None;
        }
        let mut cell = Cell { node, path: vec![] };
        let mut parent = row;
        for node in way.into_iter().rev() {
            cell.node = node;
            cell.path.push(self.position.get(node).copied()?);
            let has_others = self.elements.get(parent).is_some_and(|inside| inside.len() > 1);
            if has_others || is_cell(self.page, node) {
                break;
            }
            parent = node;
        }
        Some(cell)
    }

    /// Returns whether the number of a class is that of a row, or of what the row shows: the cell has the class
    /// with other numbers alone in another row.
    fn differs_by_row(&self, rows: &BTreeSet<usize>, cell: &Cell, class: &str) -> bool {
        let stem = without_number(class);
        let is_alike = |own: &str| {
            let number = own.strip_prefix(stem).unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        // By the row: whether the class itself is there.
        let mut found: BTreeMap<usize, bool> = BTreeMap::new();
        for (index, node) in self.page.nodes.iter().enumerate() {
            let classes = node.attributes.get("class").map(String::as_str).unwrap_or_default();
            let mut alike = classes.split_ascii_whitespace().filter(|own| is_alike(own)).peekable();
            if alike.peek().is_none() {
                continue;
            }
            let row = ancestors(self.page, index).find(|node| rows.contains(node));
            let Some(row) = row else { continue };
            if self.around(row, index).is_some_and(|other| self.are_same(cell, &other)) {
                let has_it = alike.any(|own| own == class);
                let entry = found.entry(row).or_default();
                *entry = *entry || has_it;
            }
        }
        found.values().any(|has_it| !has_it)
    }

    /// Returns whether two cells are at the same position. An optional element of a row that is no row
    /// of a table moves those after it: where a single element has the classes of a cell, it is that cell.
    fn are_same(&self, one: &Cell, other: &Cell) -> bool {
        let is_there = one.path == other.path
            && columns_of(self.page, one.node) == columns_of(self.page, other.node);
        if is_cell(self.page, one.node) || self.alike(one.node, one.node).len() != 1 {
            return is_there;
        }
        match self.alike(one.node, other.node).as_slice() {
            [only] => *only == other.node,
            _ => is_there,
        }
    }

    /// Returns the elements that have the tag and the steady classes of `cell`, of those in the parent of
    /// `beside`; none if the cell has no such class.
    fn alike(&self, cell: usize, beside: usize) -> Vec<usize> {
        let Some(own) = self.page.nodes.get(cell) else { return vec![] };
        let classes = steady_classes(own);
        let parent = self.page.nodes.get(beside).and_then(|node| node.parent);
        let all = parent.and_then(|parent| self.elements.get(parent));
        let Some(all) = all.filter(|_| !classes.is_empty()) else { return vec![] };
        let is_alike = |index: &usize| {
            self.page.nodes.get(*index).is_some_and(|node| {
                let has = node.attributes.get("class").map(String::as_str).unwrap_or_default();
                let has_class =
                    |class: &&str| has.split_ascii_whitespace().any(|own| own == *class);
                node.tag == own.tag && classes.iter().all(has_class)
            })
        };
        all.iter().copied().filter(is_alike).collect()
    }
}

/// Returns whether an element is a cell of a table.
pub(crate) fn is_cell(page: &PageTree, node: usize) -> bool {
    let tag = page.nodes.get(node).and_then(|node| node.tag.as_deref());
    matches!(tag, Some("td" | "th"))
}

/// Returns the number of columns that a cell of a table spans; 1 for any other element.
pub(crate) fn columns_of(page: &PageTree, node: usize) -> usize {
    spanned(page, node, "colspan").max(1)
}

/// Returns the number in an attribute of a cell of a table; 1 if there is none, or for any other element.
fn spanned(page: &PageTree, node: usize, name: &str) -> usize {
    let value = page.nodes.get(node).filter(|_| is_cell(page, node));
    let value = value.and_then(|node| node.attributes.get(name));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(1)
}
