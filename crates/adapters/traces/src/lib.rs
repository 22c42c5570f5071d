//! Sends spans to a collector of OpenTelemetry: OTLP over HTTP, as protocol buffers.
//!
//! **Invariant:** who records a span never waits. Spans are in a queue of bounded length, and are dropped
//! and counted where it is full or where the collector does not take them.

mod encode;
mod export;
mod ids;
mod recorder;
mod sampler;

use std::{sync::Arc, time::Duration};

use domain::secret::Secret;
use http_client::HttpClient;
use opentelemetry_proto::tonic::resource::v1::Resource;
use ports::random::RandomSource;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use self::export::Exporter;
pub use self::{
    recorder::OtlpRecorder,
    sampler::{InvalidSampler, Sampler},
};

/// Spans that wait for the exporter; about 1 MiB.
const MAX_QUEUED_SPANS: usize = 2048;
/// How long the last spans may take to be sent when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Where spans are sent, and which ones.
#[derive(Clone)]
pub struct TraceConfig {
    /// The complete URL, `http` or `https`, of the traces.
    pub endpoint: String,
    /// Names and values of further headers, which authenticate the service.
    pub headers: Vec<(String, Secret)>,
    /// Certificates (DER) that are trusted in addition to the root certificates of Mozilla.
    pub roots: Vec<Vec<u8>>,
    /// The time for one request.
    pub timeout: Duration,
    pub sampler: Sampler,
    pub service_name: String,
    /// Further attributes of the resource.
    pub attributes: Vec<(String, String)>,
}

/// Shows neither headers nor the path of the endpoint, which may have a key of a provider.
impl std::fmt::Debug for TraceConfig {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        out.debug_struct("TraceConfig")
            .field("headers", &headers)
            .field("timeout", &self.timeout)
            .field("sampler", &self.sampler)
            .field("service_name", &self.service_name)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

/// The process whose spans are sent.
#[derive(Debug, Clone)]
pub struct TracedProcess {
    /// Different for each process.
    pub instance: String,
    pub version: &'static str,
}

/// Why no spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum StartTracesError {
    #[error("failed to set up TLS to the collector of traces")]
    Tls(#[from] rustls::Error),
    #[error("the endpoint or a header for traces is invalid")]
    Request,
}

/// The export of spans, which runs until it is finished.
pub struct TraceExport {
    pub recorder: Arc<OtlpRecorder>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl TraceExport {
    /// Starts to send spans from a task of its own.
    ///
    /// # Errors
    /// The endpoint, a header or a certificate is invalid. A collector that is not reachable is none:
    /// spans are dropped until it is.
    pub fn start(
        config: &TraceConfig,
        process: &TracedProcess,
        random: Arc<dyn RandomSource>,
    ) -> Result<Self, StartTracesError> {
        let client = HttpClient::trusting(&config.roots)?;
        let (queue, spans) = mpsc::channel(MAX_QUEUED_SPANS);
        let stop = CancellationToken::new();
        let resource = resource(config, process);
        let exporter = Exporter::new(
            config,
            client,
            (resource, process.version),
            random.clone(),
            stop.clone(),
        );
        let exporter = exporter.ok_or(StartTracesError::Request)?;
        let task = tokio::spawn(exporter.run(spans));
        let recorder = OtlpRecorder { sampler: config.sampler, random, queue };
        Ok(Self { recorder: Arc::new(recorder), stop, task })
    }

    /// Sends what was recorded, for three seconds at most. Later spans are dropped.
    pub async fn finish(self) {
        self.stop.cancel();
        let abort = self.task.abort_handle();
        if tokio::time::timeout(FLUSH_TIMEOUT, self.task).await.is_err() {
            abort.abort();
            tracing::warn!("the last spans could not be sent in time and are lost");
        }
    }
}

fn resource(config: &TraceConfig, process: &TracedProcess) -> Resource {
    let own = [
        ("service.name", config.service_name.as_str()),
        ("service.version", process.version),
        ("service.instance.id", process.instance.as_str()),
    ];
    let further = config.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let further = further.filter(|(name, _)| own.iter().all(|(own, _)| own != name));
    let attributes = own.into_iter().chain(further).map(|(name, value)| encode::text(name, value));
    Resource { attributes: attributes.collect(), ..Resource::default() }
}

#[cfg(test)]
mod tests;
