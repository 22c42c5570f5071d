//! Prometheus metrics, recorded in this process.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets of durations, in seconds.
const DURATION_BUCKETS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
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
        let durations = Matcher::Suffix("_seconds".to_owned());
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(durations, DURATION_BUCKETS)?
            .install_recorder()?;
        metrics::describe_histogram!(
            "avouch_http_request_seconds",
            metrics::Unit::Seconds,
            "Requests by method, route and class of status"
        );
        metrics::describe_counter!("avouch_http_panics_total", "Requests whose handler panicked");
        metrics::describe_counter!(
            "avouch_rate_limit_local_total",
            "Requests counted by this process alone because Redis was unavailable"
        );
        metrics::describe_counter!("avouch_sessions_closed_total", "Closed sessions, by status");
        metrics::describe_counter!(
            "avouch_delivery_attempts_total",
            "POSTs to webhooks, by outcome"
        );
        metrics::describe_gauge!(
            "avouch_definition_drift",
            "Signals and fields of a platform that used to match and no longer do"
        );
        metrics::describe_gauge!("avouch_deliveries_in_flight", "POSTs to webhooks in flight");
        metrics::describe_histogram!(
            "avouch_delivery_wait_seconds",
            metrics::Unit::Seconds,
            "Time from when a POST to a webhook is due until it begins"
        );
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
