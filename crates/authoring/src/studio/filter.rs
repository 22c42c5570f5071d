//! The elements of an inspected page that an author looks for by a selector.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use domain::workflow::{FRAME_SEPARATOR, PageTree, Select, find_elements};
use serde::Serialize;

use super::{Studio, StudioError};

/// The length of a selector, as in definitions.
const MAX_SELECTOR_BYTES: usize = 2048;
/// Documents and shadow trees that are searched.
const MAX_ROOTS: usize = 50;

/// The elements that a selector matches, by their places in the page, in document order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundElements {
    nodes: Vec<usize>,
}

/// The searches of a studio, one at a time: a selector may take long on a large page, and one that an author has
/// written on since is not wanted any more.
#[derive(Debug, Default)]
pub(super) struct Searches {
    newest: AtomicU64,
    running: Mutex<()>,
}

impl Searches {
    /// Returns the number of a search that begins.
    pub(super) fn begin(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Searches once no other search is running; `None` if another one has begun since.
    pub(super) fn run<T>(&self, number: u64, search: impl FnOnce() -> T) -> Option<T> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        (self.newest.load(Ordering::Relaxed) == number).then(search)
    }
}

impl Studio {
    /// Returns the elements of an inspected page that a selector matches, visible or not; none if it is
    /// no selector or has more than 2,048 bytes. Waits for the search before.
    ///
    /// # Errors
    /// The inspection is not kept, or another search has begun before this one could.
    pub fn find(&self, inspection: u64, selector: &str) -> Result<FoundElements, StudioError> {
        let page = self.inspection(inspection)?;
        let search = || self.select(|select| matching(&page.tree, selector, select));
        let number = self.searches.begin();
        let nodes = self.searches.run(number, search).ok_or(StudioError::NewerSearch)?;
        Ok(FoundElements { nodes })
    }
}

/// Returns the elements that a selector matches. One that does not say in which frame or shadow root
/// matches in all of the first 50.
pub(super) fn matching(page: &PageTree, selector: &str, select: Select<'_>) -> Vec<usize> {
    let selector = selector.trim();
    if selector.is_empty() || selector.len() > MAX_SELECTOR_BYTES {
        return vec![];
    }
    if selector.contains(FRAME_SEPARATOR) {
        return find_elements(page, 0, selector, select);
    }
    let roots = (0..page.nodes.len()).filter(|index| page.is_root(*index)).take(MAX_ROOTS);
    let mut found: Vec<_> = roots.flat_map(|root| select(page, root, selector)).collect();
    found.sort_unstable();
    found
}
