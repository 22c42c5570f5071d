//! Which signals of a definition hold, and which have held during a run.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::workflow::{Condition, Observation, condition::SignalEvaluation};

/// The signals of a definition during a run. Each is evaluated once for each observation.
#[derive(Debug, Clone)]
pub(super) struct SignalStates {
    /// The index of each signal in the other two, by its name.
    indices: Arc<HashMap<String, usize>>,
    /// Whether each signal holds on the last observed page.
    now: Vec<bool>,
    /// Whether each signal has held on a settled page; empty if there was none.
    ever: Vec<bool>,
}

impl SignalStates {
    pub(super) fn new(signals: &BTreeMap<String, Condition>) -> Self {
        let indices = signals.keys().cloned().zip(0..).collect();
        Self { indices: Arc::new(indices), now: vec![], ever: vec![] }
    }

    /// Evaluates the signals of the definition that the states were created for. Only responses with a
    /// higher number than `after` count.
    pub(super) fn update(
        &mut self,
        signals: &BTreeMap<String, Condition>,
        page: &Observation,
        after: u64,
    ) {
        let evaluation = SignalEvaluation::new(signals, page, after);
        self.now.clear();
        self.now.extend(signals.values().map(|condition| evaluation.condition_holds(condition, 0)));
        if page.settled {
            self.ever.resize(self.now.len(), false);
            for (ever, now) in self.ever.iter_mut().zip(&self.now) {
                *ever |= now;
            }
        }
    }

    /// Forgets the last observed page.
    pub(super) fn clear(&mut self) {
        self.now.clear();
    }

    /// Returns whether a signal holds on the last observed page.
    pub(super) fn holds(&self, signal: &str) -> bool {
        let index = self.indices.get(signal);
        index.and_then(|index| self.now.get(*index)).copied().unwrap_or_default()
    }

    /// Returns all signals, by name, and whether each holds on the last observed page.
    pub(super) fn now(&self, signals: &BTreeMap<String, Condition>) -> Vec<(String, bool)> {
        signals.keys().cloned().zip(self.now.iter().copied()).collect()
    }

    /// Returns whether each signal has held on a settled page.
    pub(super) fn ever(&self, signals: &BTreeMap<String, Condition>) -> BTreeMap<String, bool> {
        signals.keys().cloned().zip(self.ever.iter().copied()).collect()
    }
}
