//! The nodes that a workflow run has entered.

use domain::workflow::Run;
use tokio::sync::{mpsc, watch};

use crate::session_traces::NodeSpans;

/// Nodes that a run may enter before the recorder has read them.
const MAX_PENDING_NODES: usize = 64;

/// Publishes the nodes that a run enters.
pub(crate) struct Nodes {
    recorder: mpsc::Sender<String>,
    last: watch::Sender<Option<String>>,
    spans: Option<NodeSpans>,
}

/// Returns a publisher of nodes, and the receiver for the recorder, which ends with the publisher. The
/// nodes are also spans of the session's trace, if it is recorded.
pub(crate) fn nodes(spans: Option<NodeSpans>) -> (Nodes, mpsc::Receiver<String>) {
    let (recorder, entered) = mpsc::channel(MAX_PENDING_NODES);
    (Nodes { recorder, last: watch::Sender::new(None), spans }, entered)
}

impl Nodes {
    /// Publishes the nodes after the first `published` ones. Returns how many there are.
    pub(super) fn publish(&self, run: &Run, published: usize) -> usize {
        for node in run.path().iter().skip(published) {
            // A recorder that is behind misses the node; the run does not wait for it.
            let _ = self.recorder.try_send(node.clone());
            if let Some(spans) = &self.spans {
                spans.enter(node);
            }
        }
        self.last.send_replace(run.path().last().cloned());
        run.path().len()
    }

    /// Returns the node that the run is at.
    pub(super) fn last(&self) -> Option<String> {
        self.last.borrow().clone()
    }
}
