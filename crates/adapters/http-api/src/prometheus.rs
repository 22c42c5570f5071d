//! Metrics for Prometheus, gathered in this process.

use std::{
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets of durations, in seconds.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// What was recorded is folded this often, or memory would grow until somebody looks.
const UPKEEP: Duration = Duration::from_secs(5);

static GATHERED: OnceLock<PrometheusHandle> = OnceLock::new();
static INSTALLING: Mutex<()> = Mutex::new(());

/// What has been gathered since the process began.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Gathers from now on; once a process, however often it is called.
    ///
    /// # Errors
    /// Something else gathers metrics in this process.
    pub fn install() -> Result<Self, BuildError> {
        let _one = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = GATHERED.get() {
            return Ok(Self(handle.clone()));
        }
        let durations = Matcher::Suffix("_seconds".to_owned());
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(durations, SECONDS)?
            .install_recorder()?;
        metrics::describe_histogram!(
            "avouch_http_request_seconds",
            metrics::Unit::Seconds,
            "Requests by method, route and class of status"
        );
        metrics::describe_counter!("avouch_http_panics_total", "Requests whose handler panicked");
        metrics::describe_counter!(
            "avouch_rate_limit_local_total",
            "Requests counted by this process alone because Redis was away"
        );
        metrics::describe_counter!(
            "avouch_sessions_closed_total",
            "Sessions that ended, by status"
        );
        metrics::describe_counter!(
            "avouch_delivery_attempts_total",
            "POSTs to webhooks, by what came of them"
        );
        metrics::describe_gauge!("avouch_deliveries_in_flight", "POSTs to webhooks under way");
        metrics::describe_histogram!(
            "avouch_delivery_wait_seconds",
            metrics::Unit::Seconds,
            "From when a POST to a webhook is due to when it begins"
        );
        Ok(Self(GATHERED.get_or_init(|| handle).clone()))
    }

    /// The text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.render()
    }

    /// Keeps memory flat; never ends.
    pub async fn upkeep(&self) {
        loop {
            tokio::time::sleep(UPKEEP).await;
            self.0.run_upkeep();
        }
    }
}
