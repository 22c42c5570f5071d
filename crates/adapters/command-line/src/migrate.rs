//! `avouch migrate`: its arguments, and what it prints.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

/// The longest time that a database which does not respond is waited for.
const MAX_WAIT_SECONDS: u64 = 3600;

#[derive(Debug, Clone, Copy, Args)]
pub struct MigrateArguments {
    /// Only tells which migrations are pending: prints {"pending","newer"}, changes nothing, and
    /// exits with 5 if there are some
    #[arg(long)]
    pub check: bool,
    /// How long to wait for a database that does not respond yet, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=MAX_WAIT_SECONDS))]
    pub wait: u64,
}

impl MigrateArguments {
    /// Returns how long to wait for a database that does not respond.
    #[must_use]
    pub const fn wait(self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

/// What the command found or did. `newer` has the versions of migrations that a newer release has
/// applied; the others are names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationReport {
    Checked { pending: Vec<String>, newer: Vec<String> },
    Applied { applied: Vec<String>, newer: Vec<String> },
}

impl MigrationReport {
    /// Returns the object that is printed.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Checked { pending, newer } => json!({ "pending": pending, "newer": newer }),
            Self::Applied { applied, newer } => json!({ "applied": applied, "newer": newer }),
        }
    }

    /// Returns whether migrations are pending after the command.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        match self {
            Self::Checked { pending, .. } => !pending.is_empty(),
            Self::Applied { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_object_and_tells_whether_migrations_are_pending() {
        let report = |pending: &[&str]| MigrationReport::Checked {
            pending: pending.iter().map(|name| (*name).to_owned()).collect(),
            newer: vec!["0028".to_owned()],
        };
        let behind = report(&["0027_second"]);
        assert_eq!(behind.to_json(), json!({ "pending": ["0027_second"], "newer": ["0028"] }));
        assert!(behind.is_behind() && !report(&[]).is_behind());
        let applied =
            MigrationReport::Applied { applied: vec!["0027_second".to_owned()], newer: vec![] };
        assert_eq!(applied.to_json(), json!({ "applied": ["0027_second"], "newer": [] }));
        assert!(!applied.is_behind());
    }
}
