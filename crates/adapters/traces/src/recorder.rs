//! Takes spans of traces that are sampled into the queue of the exporter.

use std::sync::Arc;

use domain::id::SessionId;
use ports::{
    random::RandomSource,
    spans::{OwnTrace, Span, SpanRecorder, SpanSubject, SpanTrace},
};
use tokio::sync::mpsc;

use crate::{
    encode::IdentifiedSpan,
    ids::{root_of, status_of, trace_of, valid},
    sampler::Sampler,
};

/// Records spans for a collector.
pub struct OtlpRecorder {
    pub(crate) sampler: Sampler,
    pub(crate) random: Arc<dyn RandomSource>,
    pub(crate) queue: mpsc::Sender<IdentifiedSpan>,
}

impl SpanRecorder for OtlpRecorder {
    fn is_sampled(&self, session: SessionId) -> bool {
        self.sampler.samples(trace_of(session))
    }

    fn new_trace(&self) -> Option<OwnTrace> {
        let trace = self.random_id();
        self.sampler.samples(trace).then_some(OwnTrace(trace))
    }

    fn record(&self, span: Span) {
        let trace = match span.trace {
            SpanTrace::Session(session) => trace_of(session),
            SpanTrace::Own(OwnTrace(trace)) => trace,
        };
        if !self.sampler.samples(trace) {
            return;
        }
        let (id, parent) = match (span.trace, &span.subject) {
            (SpanTrace::Session(session), SpanSubject::Session) => (root_of(session), None),
            (SpanTrace::Session(session), SpanSubject::Status { since, .. }) => {
                (status_of(session, *since), Some(root_of(session)))
            }
            (SpanTrace::Session(session), _) => (self.random_id(), Some(root_of(session))),
            (SpanTrace::Own(_), _) => (self.random_id(), None),
        };
        if self.queue.try_send(IdentifiedSpan { trace, id, parent, span }).is_err() {
            metrics::counter!("avouch_spans_dropped_total", "reason" => "queue").increment(1);
        }
    }
}

impl OtlpRecorder {
    /// Returns an identifier of `N` bytes, 32 at most.
    fn random_id<const N: usize>(&self) -> [u8; N] {
        let bytes = self.random.random_bytes();
        valid(bytes.first_chunk().copied().unwrap_or([0; N]))
    }
}
