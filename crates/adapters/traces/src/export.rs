//! Sends spans in batches: what was recorded within a second, or the spans of a full batch.

use std::{sync::Arc, time::Duration};

use http_client::HttpClient;
use hyper::{
    Request, Uri,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::InstrumentationScope,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans},
};
use ports::random::RandomSource;
use prost::Message as _;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{TraceConfig, encode::IdentifiedSpan};

/// Spans in one request; about 256 KiB.
const MAX_BATCH: usize = 512;
/// How long a span waits for others.
const BATCH_INTERVAL: Duration = Duration::from_secs(1);
/// How often a batch is sent.
const MAX_ATTEMPTS: u32 = 3;
/// The delay before the second attempt; it doubles, and has up to as much again at random.
const RETRY_DELAY: Duration = Duration::from_millis(500);

pub(crate) struct Exporter {
    client: HttpClient,
    endpoint: Uri,
    headers: HeaderMap,
    timeout: Duration,
    resource: Resource,
    scope: InstrumentationScope,
    random: Arc<dyn RandomSource>,
    /// Cancelled when the process ends: what waits is sent once, and nothing is tried again.
    stop: CancellationToken,
    /// Whether the last batch was lost; each change is logged once.
    is_failing: bool,
}

/// Why a batch was not taken.
enum Failure {
    /// Another attempt may succeed.
    Temporary(String),
    Permanent(String),
}

impl Exporter {
    /// Returns `None` where the endpoint or a header is invalid.
    pub(crate) fn new(
        config: &TraceConfig,
        client: HttpClient,
        (resource, version): (Resource, &str),
        random: Arc<dyn RandomSource>,
        stop: CancellationToken,
    ) -> Option<Self> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = HeaderValue::from_str(&format!("avouch/{version}")).ok()?;
        headers.insert(USER_AGENT, agent);
        for (name, value) in &config.headers {
            let name: HeaderName = name.parse().ok()?;
            let mut value = HeaderValue::from_str(value.expose()).ok()?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let scope = InstrumentationScope {
            name: "avouch".to_owned(),
            version: version.to_owned(),
            ..InstrumentationScope::default()
        };
        Some(Self {
            client,
            endpoint: config.endpoint.parse().ok()?,
            headers,
            timeout: config.timeout,
            resource,
            scope,
            random,
            stop,
            is_failing: false,
        })
    }

    /// Sends spans until the process ends, and then those that wait.
    pub(crate) async fn run(mut self, mut spans: mpsc::Receiver<IdentifiedSpan>) {
        let stop = self.stop.clone();
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while stop.run_until_cancelled(gather(&mut spans, &mut batch)).await == Some(true) {
            self.export(std::mem::take(&mut batch)).await;
        }
        spans.close();
        loop {
            let room = MAX_BATCH.saturating_sub(batch.len());
            spans.recv_many(&mut batch, room).await;
            if batch.is_empty() {
                return;
            }
            self.export(std::mem::take(&mut batch)).await;
        }
    }

    async fn export(&mut self, batch: Vec<IdentifiedSpan>) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let body = self.body(batch);
        match self.send_repeatedly(&body).await {
            Ok(rejected) => {
                // The collector says any number.
                let rejected = rejected.min(count);
                metrics::counter!("avouch_spans_exported_total")
                    .increment(count.saturating_sub(rejected));
                dropped("rejected", rejected);
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("spans are sent to the collector of traces again");
                }
            }
            Err(why) => {
                dropped("export", count);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(
                        "failed to send spans to the collector of traces ({why}); they are lost until it takes them again"
                    );
                }
            }
        }
    }

    fn body(&self, batch: Vec<IdentifiedSpan>) -> Vec<u8> {
        let spans = batch.into_iter().map(Into::into).collect();
        let scope = Some(self.scope.clone());
        let scope_spans = vec![ScopeSpans { scope, spans, ..ScopeSpans::default() }];
        let resource = Some(self.resource.clone());
        let resource_spans =
            vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }

    /// Returns the number of spans that the collector has refused, or why it took none.
    async fn send_repeatedly(&self, body: &[u8]) -> Result<u64, String> {
        let mut attempt = 1;
        loop {
            match self.send(body).await {
                Ok(rejected) => return Ok(rejected),
                Err(Failure::Temporary(_)) if attempt < MAX_ATTEMPTS => (),
                Err(Failure::Temporary(why) | Failure::Permanent(why)) => return Err(why),
            }
            let delay = RETRY_DELAY * 2_u32.saturating_pow(attempt - 1);
            let jitter = delay.mul_f64(f64::from(self.random.random_u16()) / 65_536.0);
            attempt += 1;
            let waited = tokio::time::sleep(delay + jitter);
            if self.stop.run_until_cancelled(waited).await.is_none() {
                attempt = MAX_ATTEMPTS;
            }
        }
    }

    async fn send(&self, body: &[u8]) -> Result<u64, Failure> {
        let mut request = Request::post(self.endpoint.clone())
            .body(body.to_vec())
            .map_err(|error| Failure::Permanent(error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        let response = match tokio::time::timeout(self.timeout, self.client.send(request)).await {
            Err(_) => return Err(Failure::Temporary("no response in time".to_owned())),
            Ok(Err(error)) => return Err(Failure::Temporary(error.to_string())),
            Ok(Ok(response)) => response,
        };
        match response.status().as_u16() {
            200..=299 => Ok(rejected(response.body())),
            code @ (429 | 502..=504) => Err(Failure::Temporary(format!("status {code}"))),
            code => Err(Failure::Permanent(format!("status {code}"))),
        }
    }
}

/// Waits for a first span, and then for others. Returns whether the batch has spans; `false` when no more
/// can come. If the future is dropped, the spans are in the batch.
async fn gather(
    spans: &mut mpsc::Receiver<IdentifiedSpan>,
    batch: &mut Vec<IdentifiedSpan>,
) -> bool {
    if spans.recv_many(batch, MAX_BATCH).await == 0 {
        return false;
    }
    let until = Instant::now() + BATCH_INTERVAL;
    while let room @ 1.. = MAX_BATCH.saturating_sub(batch.len()) {
        match tokio::time::timeout_at(until, spans.recv_many(batch, room)).await {
            Ok(1..) => (),
            Ok(0) | Err(_) => break,
        }
    }
    true
}

/// Returns how many spans the collector has not accepted.
pub(crate) fn rejected(body: &[u8]) -> u64 {
    let response = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    let rejected = response.partial_success.map_or(0, |partial| partial.rejected_spans);
    u64::try_from(rejected).unwrap_or_default()
}

fn dropped(reason: &'static str, count: u64) {
    if count > 0 {
        metrics::counter!("avouch_spans_dropped_total", "reason" => reason).increment(count);
    }
}
