//! Takes spans of traces that are sampled into the queue of the exporter.

use std::sync::Arc;

use domain::id::SessionId;
use ports::{
    random::RandomSource,
    spans::{Span, SpanRecorder, SpanSubject, SpanTrace},
};
use tokio::sync::mpsc;

use crate::{
    encode::IdentifiedSpan,
    ids::{SpanId, TraceId, root_of, status_of, trace_of, valid},
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

    fn record(&self, span: Span) {
        let (trace, random) = match span.trace {
            SpanTrace::Session(session) => (trace_of(session), None),
            SpanTrace::Own => {
                let [random, own] = self.random_ids();
                (own, Some(random))
            }
        };
        if !self.sampler.samples(trace) {
            return;
        }
        let (id, parent) = match (span.trace, &span.subject) {
            (SpanTrace::Session(session), SpanSubject::Session) => (root_of(session), None),
            (SpanTrace::Session(session), SpanSubject::Status { since, .. }) => {
                (status_of(session, *since), Some(root_of(session)))
            }
            (SpanTrace::Session(session), _) => {
                let [random, _] = self.random_ids();
                (span_id(random), Some(root_of(session)))
            }
            (SpanTrace::Own, _) => (span_id(random.unwrap_or_default()), None),
        };
        if self.queue.try_send(IdentifiedSpan { trace, id, parent, span }).is_err() {
            metrics::counter!("avouch_spans_dropped_total", "reason" => "queue").increment(1);
        }
    }
}

impl OtlpRecorder {
    fn random_ids(&self) -> [TraceId; 2] {
        let bytes = self.random.random_bytes();
        let (first, second) = bytes.split_at(16);
        [first, second].map(|half| valid(half.first_chunk().copied().unwrap_or_default()))
    }
}

fn span_id(random: TraceId) -> SpanId {
    valid(random.first_chunk().copied().unwrap_or_default())
}
