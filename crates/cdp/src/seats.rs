//! Room for so many browsers, each with a seat of its own.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

#[derive(Clone)]
pub(crate) struct Seats {
    free: Arc<Mutex<BTreeSet<usize>>>,
}

/// A seat that is taken; it is free again when this is dropped.
pub(crate) struct Taken {
    pub(crate) seat: usize,
    seats: Seats,
}

impl Seats {
    pub(crate) fn new(count: usize) -> Self {
        Self { free: Arc::new(Mutex::new((0..count).collect())) }
    }

    /// A seat, if one is free.
    pub(crate) fn take(&self) -> Option<Taken> {
        let seat = self.free().pop_first()?;
        Some(Taken { seat, seats: self.clone() })
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.seats.free().insert(self.seat);
    }
}
