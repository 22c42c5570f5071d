//! Which changes ask somebody to confirm again who they are (step-up authentication).

use chrono::{DateTime, TimeDelta, Utc};

/// How long a sign-in or a confirmation counts for changes that ask for one.
pub const REAUTHENTICATION_TTL: TimeDelta = TimeDelta::minutes(10);

/// What a sensitive change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensitiveAction {
    /// What the person signs in with: password, second factor, passkeys. A sign-in alone does not
    /// count (ASVS 5.0, 7.5.1).
    Credentials,
    /// What the team trusts: API keys, members and their roles, webhooks and their secrets. A
    /// sign-in with a password counts as a confirmation (ASVS 5.0, 7.5.3).
    Team,
}

/// When the person who uses a sign-in has shown who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticationTimes {
    /// With a password; `None` where a provider of identities signed them in, which may not have
    /// asked them anything.
    pub signed_in_at: Option<DateTime<Utc>>,
    /// The last confirmation in this sign-in.
    pub confirmed_at: Option<DateTime<Utc>>,
}

impl SensitiveAction {
    /// Whether a change of this kind may be made now.
    #[must_use]
    pub fn is_confirmed(self, shown: AuthenticationTimes, now: DateTime<Utc>) -> bool {
        let counts =
            |at: Option<DateTime<Utc>>| at.is_some_and(|at| now - at < REAUTHENTICATION_TTL);
        counts(shown.confirmed_at)
            || match self {
                Self::Credentials => false,
                Self::Team => counts(shown.signed_in_at),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_for_which_change_and_how_long() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let ago = |seconds| Some(now - TimeDelta::seconds(seconds));
        let table = [
            (None, None, [false, false]),
            (ago(0), None, [false, true]),
            (ago(599), None, [false, true]),
            (ago(600), None, [false, false]),
            (None, ago(599), [true, true]),
            (ago(3600), ago(599), [true, true]),
            (ago(3600), ago(600), [false, false]),
        ];
        for (signed_in_at, confirmed_at, expected) in table {
            let shown = AuthenticationTimes { signed_in_at, confirmed_at };
            let may = [SensitiveAction::Credentials, SensitiveAction::Team]
                .map(|change| change.is_confirmed(shown, now));
            assert_eq!(may, expected, "{shown:?}");
        }
    }
}
