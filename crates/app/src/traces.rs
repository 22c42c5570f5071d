//! The traces of a process: recorded where they have a collector, and nothing where they have none.

use std::sync::Arc;

use application::session_traces::SessionTraces;
use domain::id::InstanceId;
use http_api::RequestSpans;
use log_format::TraceIds;
use ports::{clock::Clock, session_store::SessionQueries};
use system::clock::SystemRandom;
use traces::{TraceExport, TracedProcess};

use crate::{
    config::Config,
    storage::{StartupError, error_chain},
};

/// The export of traces, if there is one.
#[derive(Default)]
pub(crate) struct Traces(Option<TraceExport>);

impl Traces {
    /// Starts the export that is configured.
    pub(crate) fn start(config: &Config, node: InstanceId) -> Result<Self, StartupError> {
        let Some(traces) = &config.traces else { return Ok(Self(None)) };
        let instance = node.as_uuid().to_string();
        let process = TracedProcess { instance, version: env!("CARGO_PKG_VERSION") };
        let export = TraceExport::start(traces, &process, Arc::new(SystemRandom));
        Ok(Self(Some(export.map_err(error_chain)?)))
    }

    pub(crate) fn of_sessions(&self, timelines: Arc<dyn SessionQueries>) -> SessionTraces {
        let recorder = self.0.as_ref().map(|export| export.recorder.clone());
        recorder.map(|recorder| SessionTraces::new(recorder, timelines)).unwrap_or_default()
    }

    pub(crate) fn of_requests(&self, clock: Arc<dyn Clock>) -> Option<RequestSpans> {
        let export = self.0.as_ref()?;
        Some(RequestSpans { recorder: export.recorder.clone(), clock })
    }

    /// Sends what was recorded, within seconds.
    pub(crate) async fn finish(self) {
        if let Some(export) = self.0 {
            export.finish().await;
        }
    }
}

/// Returns what finds the traces of log lines. Only sessions whose spans are recorded have one.
pub(crate) fn trace_ids(config: &Config) -> TraceIds {
    let sampler = config.traces.as_ref().map(|traces| traces.sampler);
    TraceIds::new(move |session| sampler?.trace_of(session.parse().ok()?))
}
