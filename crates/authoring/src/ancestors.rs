//! What is around a node of a page.

use domain::workflow::PageTree;

/// Elements around one that are looked at.
const MAX_DEPTH: usize = 200;

/// Returns a node and those around it, the innermost first, also across frames and shadow roots: at most 201.
pub(crate) fn with_ancestors(page: &PageTree, node: usize) -> impl Iterator<Item = usize> {
    to_root(page, node).take(MAX_DEPTH.saturating_add(1))
}

/// Returns the nodes around one, the innermost first, as [`with_ancestors`].
pub(crate) fn ancestors(page: &PageTree, node: usize) -> impl Iterator<Item = usize> {
    with_ancestors(page, node).skip(1)
}

/// Marks a node and all that is around it.
pub(crate) fn mark_around(page: &PageTree, marks: &mut [bool], node: usize) {
    for at in to_root(page, node) {
        // What is around a marked one is marked as well.
        let Some(mark) = marks.get_mut(at).filter(|mark| !**mark) else { break };
        *mark = true;
    }
}

/// Returns a node and all that is around it: a node is after its parent, so that this ends.
fn to_root(page: &PageTree, node: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(node), move |node| {
        page.nodes.get(*node).and_then(|node| node.parent)
    })
}
