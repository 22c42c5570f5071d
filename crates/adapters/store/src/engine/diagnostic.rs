//! Examines the database: its version, its schema, its clock, and the security of the connection.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use ports::{
    StoreError,
    clock::Clock,
    deployment_keys::RecordedFingerprint,
    diagnostic::{Diagnosis, Diagnostic},
};

use crate::engine::probe::{MigrationCounts, Probe};
use crate::engine::server::{DatabaseUrl, Timeouts};

/// The oldest PostgreSQL that the service supports, as PostgreSQL numbers it.
const MIN_SERVER_VERSION: i32 = 140_000;
/// Differences of clocks that are worth a warning, and that are a failure. The service goes by the clock of
/// the database, which may be the wrong one.
const NOTED_SKEW: TimeDelta = TimeDelta::seconds(1);
const MAX_SKEW: TimeDelta = TimeDelta::seconds(10);

/// Examines the database of a URL. Changes nothing in it.
pub struct DatabaseDiagnostic {
    pub url: DatabaseUrl,
    pub timeouts: Timeouts,
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Diagnostic for DatabaseDiagnostic {
    fn subject(&self) -> &'static str {
        "database"
    }

    async fn examine(&self) -> Vec<Diagnosis> {
        let asked_at = self.clock.now();
        match self.url.probe(self.timeouts).await {
            Ok(probe) => diagnoses(probe, asked_at, self.clock.now()),
            Err(error) => {
                let advice = "start the server, or correct database_url; the operator's guide has a \
                              table of failures under TLS to PostgreSQL and Redis";
                vec![Diagnosis::error("not reached", &error, advice)]
            }
        }
    }
}

#[async_trait]
impl RecordedFingerprint for DatabaseDiagnostic {
    async fn recorded_fingerprint(&self) -> Result<Option<Vec<u8>>, StoreError> {
        self.url.probe(self.timeouts).await.map(|probe| probe.fingerprint)
    }
}

fn diagnoses(probe: Probe, asked_at: DateTime<Utc>, answered_at: DateTime<Utc>) -> Vec<Diagnosis> {
    let mut found = vec![Diagnosis::ok(probe.found)];
    found.extend(probe.weakness.map(|weakness| {
        Diagnosis::warning(weakness, "set sslmode=verify-full and sslrootcert in database_url")
    }));
    found.extend(schema(probe.migrations));
    if let Some((version, now)) = probe.server {
        if version < MIN_SERVER_VERSION {
            let detail = format!("PostgreSQL {} is too old", version / 10_000);
            found.push(Diagnosis::failed(detail, "upgrade it to version 14 or newer"));
        }
        found.push(clocks(now, asked_at, answered_at));
    }
    found
}

fn schema(migrations: MigrationCounts) -> Option<Diagnosis> {
    let MigrationCounts { pending, unknown } = migrations;
    if unknown > 0 {
        let detail = format!("{unknown} migrations are of a newer release than this program");
        return Some(Diagnosis::warning(detail, "run the newer release on this machine as well"));
    }
    (pending > 0).then(|| {
        let detail = format!("{pending} migrations are pending");
        Diagnosis::warning(detail, "they run at the next start of the service; back up first")
    })
}

/// Compares the clocks. The answer was given between two moments of this process, so that a difference
/// within the time that it took is none.
fn clocks(
    database: DateTime<Utc>,
    asked_at: DateTime<Utc>,
    answered_at: DateTime<Utc>,
) -> Diagnosis {
    let skew = (asked_at - database).max(database - answered_at).max(TimeDelta::zero());
    let detail = format!("its clock differs by {} ms from this machine's", skew.num_milliseconds());
    let advice = "synchronize the clocks of both machines (NTP)";
    if skew >= MAX_SKEW {
        Diagnosis::failed(detail, advice)
    } else if skew >= NOTED_SKEW {
        Diagnosis::warning(detail, advice)
    } else {
        Diagnosis::ok(detail)
    }
}

#[cfg(test)]
mod tests {
    use ports::diagnostic::DiagnosisState::{Failed, Ok, Warning};

    use super::*;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_700_000_000_000 + millis).unwrap_or_default()
    }

    #[test]
    fn a_difference_of_clocks_is_told_by_its_effect() {
        for (database, state) in [
            (0, Ok),
            (500, Ok),
            (1_400, Ok),
            (-900, Ok),
            (-1_000, Warning),
            (1_500, Warning),
            (10_500, Failed),
            (-10_000, Failed),
        ] {
            // The answer took half a second.
            assert_eq!(clocks(at(database), at(0), at(500)).state, state, "{database}");
        }
    }

    #[test]
    fn old_servers_and_other_schemas_are_told() {
        let probe = |version, pending, unknown| Probe {
            found: "PostgreSQL".into(),
            weakness: None,
            fingerprint: None,
            server: Some((version, at(0))),
            migrations: MigrationCounts { pending, unknown },
        };
        for (probe, worst) in [
            (probe(140_000, 0, 0), Ok),
            (probe(139_999, 0, 0), Failed),
            (probe(150_004, 2, 0), Warning),
            (probe(150_004, 0, 1), Warning),
        ] {
            let found = diagnoses(probe, at(0), at(0));
            assert_eq!(found.iter().map(|found| found.state).max(), Some(worst), "{found:?}");
        }
    }
}
