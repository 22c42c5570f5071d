//! The metrics of the service: names, kinds and meanings, and the counters that begin at zero.
//!
//! **Invariant:** a label has values from a list in the code. The exceptions are `version`, of which a
//! process has one, and `platform`, of which it has 200 at most.

use domain::{error_code::ErrorCode, session::Status};
use ports::{refusals::RefusalClass, webhook_sender::FailureCause};

/// Upper bounds of the buckets of requests and statements, in seconds.
const SHORT: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// The same of what an applicant or an endpoint waits for.
const LONG: &[f64] =
    &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

/// A metric.
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    /// The text of `# HELP`.
    pub(super) help: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    /// Of seconds, with these upper bounds of its buckets.
    Histogram(&'static [f64]),
}

use MetricKind::{Counter, Gauge, Histogram};

/// All metrics. `docs/operators-guide.md` describes each, which a test of the repository ensures.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "avouch_build_info",
        kind: Gauge,
        help: "1; the label has the version of the process",
    },
    Metric {
        name: "avouch_ready",
        kind: Gauge,
        help: "Whether the process serves: it does not drain, and its database answered within 25 s",
    },
    Metric {
        name: "avouch_draining",
        kind: Gauge,
        help: "Whether the process stops once its sessions have ended",
    },
    Metric {
        name: "avouch_clock_difference_seconds",
        kind: Gauge,
        help: "How far the clock of the database is ahead of the one that the process goes by",
    },
    Metric {
        name: "avouch_http_request_seconds",
        kind: Histogram(SHORT),
        help: "Requests by method, route and class of status",
    },
    Metric {
        name: "avouch_http_panics_total",
        kind: Counter,
        help: "Requests whose handler panicked",
    },
    Metric { name: "avouch_refused_total", kind: Counter, help: "Refused access, by class" },
    Metric {
        name: "avouch_rate_limit_local_total",
        kind: Counter,
        help: "Requests counted by this process alone because Redis was unavailable",
    },
    Metric {
        name: "avouch_portal_sign_ins_total",
        kind: Counter,
        help: "Attempts to sign in to the portal, by outcome",
    },
    Metric {
        name: "avouch_sessions",
        kind: Gauge,
        help: "Open sessions whose applicant or browser is in this process, by status",
    },
    Metric {
        name: "avouch_sessions_closed_total",
        kind: Counter,
        help: "Closed sessions, by status and error code",
    },
    Metric {
        name: "avouch_session_first_frame_seconds",
        kind: Histogram(LONG),
        help: "Time from when an applicant opens a new session until the first frame is sent",
    },
    Metric { name: "avouch_viewers", kind: Gauge, help: "Connected applicants and observers" },
    Metric { name: "avouch_browser_slots", kind: Gauge, help: "Browsers that may run at once" },
    Metric {
        name: "avouch_browser_slots_used",
        kind: Gauge,
        help: "Browsers of sessions, running or being started",
    },
    Metric {
        name: "avouch_browser_waiting",
        kind: Gauge,
        help: "Sessions that wait for a browser",
    },
    Metric {
        name: "avouch_browser_oldest_wait_seconds",
        kind: Gauge,
        help: "How long the session has waited that has waited for the longest time",
    },
    Metric {
        name: "avouch_browser_start_seconds",
        kind: Histogram(LONG),
        help: "Time to start a browser for a session, by outcome",
    },
    Metric {
        name: "avouch_fleet_attempts_total",
        kind: Counter,
        help: "Attempts to get a browser from an endpoint of the fleet, by outcome",
    },
    Metric {
        name: "avouch_browsers_lost_total",
        kind: Counter,
        help: "Browsers that ended while a session needed them",
    },
    Metric {
        name: "avouch_egress_refusals_total",
        kind: Counter,
        help: "Connections of browsers that the egress policy refused",
    },
    Metric {
        name: "avouch_definition_drift",
        kind: Gauge,
        help: "Signals and fields of a platform that used to match and no longer do",
    },
    Metric {
        name: "avouch_attestation_seconds",
        kind: Histogram(LONG),
        help: "Time to make an attestation, by outcome",
    },
    Metric {
        name: "avouch_queue_due",
        kind: Gauge,
        help: "Entries of a queue in the database that are due; the same in every process",
    },
    Metric {
        name: "avouch_queue_oldest_due_seconds",
        kind: Gauge,
        help: "How long the oldest entry of a queue is due; the same in every process",
    },
    Metric {
        name: "avouch_job_attempts_total",
        kind: Counter,
        help: "Attempts at jobs of the outbox, by kind and outcome",
    },
    Metric {
        name: "avouch_delivery_attempts_total",
        kind: Counter,
        help: "POSTs to webhooks, by outcome",
    },
    Metric {
        name: "avouch_deliveries_exhausted_total",
        kind: Counter,
        help: "Deliveries that were given up",
    },
    Metric {
        name: "avouch_deliveries_in_flight",
        kind: Gauge,
        help: "POSTs to webhooks in flight",
    },
    Metric {
        name: "avouch_delivery_wait_seconds",
        kind: Histogram(LONG),
        help: "Time from when a POST to a webhook is due until it begins",
    },
    Metric {
        name: "avouch_link_attempts_total",
        kind: Counter,
        help: "Attempts to send an applicant a link, by outcome",
    },
    Metric {
        name: "avouch_account_mail_attempts_total",
        kind: Counter,
        help: "Attempts to send a member of a team a mail, by outcome",
    },
    Metric {
        name: "avouch_database_connections_in_use",
        kind: Gauge,
        help: "Connections of the pool that are in use",
    },
    Metric {
        name: "avouch_database_connection_wait_seconds",
        kind: Histogram(SHORT),
        help: "Time to get a connection of the pool, by outcome",
    },
    Metric {
        name: "avouch_database_statement_seconds",
        kind: Histogram(SHORT),
        help: "Time of a statement or transaction, by outcome",
    },
    Metric {
        name: "avouch_spans_exported_total",
        kind: Counter,
        help: "Spans that the collector of traces has taken",
    },
    Metric {
        name: "avouch_spans_dropped_total",
        kind: Counter,
        help: "Spans that were lost, by reason",
    },
];

/// The labels of one time series.
pub(super) type SeriesLabels = Vec<(&'static str, &'static str)>;

/// Returns the time series that exist from the start, at zero, so that the first event counts as an
/// increase.
pub(super) fn initial_counters() -> Vec<(&'static str, SeriesLabels)> {
    let mut series: Vec<_> = [
        "avouch_http_panics_total",
        "avouch_rate_limit_local_total",
        "avouch_browsers_lost_total",
        "avouch_deliveries_exhausted_total",
        "avouch_egress_refusals_total",
        "avouch_spans_exported_total",
    ]
    .map(|name| (name, vec![]))
    .into();
    let mut add = |name, label, values: Vec<&'static str>| {
        series.extend(values.into_iter().map(|value| (name, vec![(label, value)])));
    };
    let refusals = RefusalClass::ALL.map(RefusalClass::as_str).into_iter().chain(["absent"]);
    add("avouch_refused_total", "class", refusals.collect());
    let causes = FailureCause::ALL.map(FailureCause::as_str);
    let answers = ["delivered", "refused"].into_iter().chain(causes);
    add("avouch_delivery_attempts_total", "outcome", answers.collect());
    add("avouch_portal_sign_ins_total", "outcome", vec!["in", "refused", "throttled"]);
    for name in ["avouch_link_attempts_total", "avouch_account_mail_attempts_total"] {
        add(name, "outcome", vec!["sent", "put_off", "failed"]);
    }
    add("avouch_spans_dropped_total", "reason", vec!["queue", "export", "rejected"]);
    for kind in ["start_browser", "release_browser", "forget_recording"] {
        for outcome in ["done", "put_off", "given_up"] {
            let labels = vec![("kind", kind), ("outcome", outcome)];
            series.push(("avouch_job_attempts_total", labels));
        }
    }
    let closed = |status: Status, code| {
        ("avouch_sessions_closed_total", vec![("status", status.as_str()), ("error_code", code)])
    };
    series.push(closed(Status::Completed, "none"));
    series.extend(ErrorCode::ALL.iter().map(|code| closed(Status::Error, code.as_str())));
    series
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_tell_kind_and_unit() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "a name is given twice");
        for metric in METRICS {
            let (name, kind) = (metric.name, metric.kind);
            assert_eq!(name.ends_with("_total"), matches!(kind, Counter), "{name}");
            assert!(!matches!(kind, Histogram(_)) || name.ends_with("_seconds"), "{name}");
            assert!(!metric.help.is_empty() && !metric.help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn counters_that_begin_at_zero_are_listed_and_few() {
        let series = initial_counters();
        for (name, _) in &series {
            let listed = METRICS.iter().find(|metric| metric.name == *name);
            assert!(listed.is_some_and(|metric| matches!(metric.kind, Counter)), "{name}");
        }
        assert!(series.len() < 100, "{}", series.len());
    }
}
