//! The nodes that a run has come to.

use domain::workflow::Run;
use tokio::sync::{mpsc, watch};

/// Nodes that a workflow may come to before the recorder has noted them.
const MAX_PENDING_NODES: usize = 64;

/// Where a workflow says which node it has come to.
pub(crate) struct Nodes {
    recorder: mpsc::Sender<String>,
    last: watch::Sender<Option<String>>,
}

/// That, and where a recorder hears of it until it is dropped.
pub(crate) fn nodes() -> (Nodes, mpsc::Receiver<String>) {
    let (recorder, heard) = mpsc::channel(MAX_PENDING_NODES);
    (Nodes { recorder, last: watch::Sender::new(None) }, heard)
}

impl Nodes {
    /// Takes note of the nodes that the run has come to since; answers how many there are.
    pub(super) fn note(&self, run: &Run, noted: usize) -> usize {
        for node in run.path().iter().skip(noted) {
            // A recorder that is behind leaves a chapter out.
            let _ = self.recorder.try_send(node.clone());
        }
        self.last.send_replace(run.path().last().cloned());
        run.path().len()
    }

    /// The node that the run is at.
    pub(super) fn last(&self) -> Option<String> {
        self.last.borrow().clone()
    }
}
