//! A bounded number of browser slots, each with an index of its own.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The slots of one pool. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Slots {
    free: Arc<Mutex<BTreeSet<usize>>>,
}

/// An occupied slot, which is freed on drop.
pub(crate) struct Slot {
    pub(crate) index: usize,
    slots: Slots,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Arc::new(Mutex::new((0..count).collect())) }
    }

    /// Occupies the free slot with the lowest index, if there is one.
    pub(crate) fn take(&self) -> Option<Slot> {
        let index = self.free().pop_first()?;
        Some(Slot { index, slots: self.clone() })
    }

    pub(crate) fn free_count(&self) -> usize {
        self.free().len()
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.free().insert(self.index);
    }
}
