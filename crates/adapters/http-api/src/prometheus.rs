//! Prometheus metrics, recorded in this process.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::metric_list::{METRICS, MetricKind, initial_counters};

/// The interval at which recorded values are aggregated; without it memory grows until the next
/// scrape.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

static INSTALLED: OnceLock<PrometheusHandle> = OnceLock::new();
static INSTALLING: Mutex<()> = Mutex::new(());

/// The metrics recorded since the process started.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder once in the process; later calls return the same metrics.
    ///
    /// # Errors
    /// Another recorder is already installed in this process.
    pub fn install() -> Result<Self, BuildError> {
        let _guard = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = INSTALLED.get() {
            return Ok(Self(handle.clone()));
        }
        let handle = builder()?.install_recorder()?;
        describe();
        for (name, labels) in initial_counters() {
            metrics::counter!(name, &labels).increment(0);
        }
        let version = env!("CARGO_PKG_VERSION");
        metrics::gauge!("avouch_build_info", "version" => version).set(1.0);
        Ok(Self(INSTALLED.get_or_init(|| handle).clone()))
    }

    /// Renders the metrics in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.render()
    }

    /// Aggregates recorded values regularly, so that memory stays bounded. Never returns.
    pub async fn upkeep(&self) {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            self.0.run_upkeep();
        }
    }
}

/// Returns a recorder with the buckets of all histograms.
fn builder() -> Result<PrometheusBuilder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for metric in METRICS {
        if let MetricKind::Histogram(buckets) = metric.kind {
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, buckets)?;
        }
    }
    Ok(builder)
}

fn describe() {
    for metric in METRICS {
        match metric.kind {
            MetricKind::Counter => metrics::describe_counter!(metric.name, metric.help),
            MetricKind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            MetricKind::Histogram(_) => {
                metrics::describe_histogram!(metric.name, metrics::Unit::Seconds, metric.help);
            }
        }
    }
}
