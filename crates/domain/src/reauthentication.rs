//! Re-authentication: the changes that require a recent confirmation of identity (step-up
//! authentication).

use chrono::{DateTime, TimeDelta, Utc};

/// How long a sign-in or a re-authentication is valid for sensitive changes.
pub const REAUTHENTICATION_TTL: TimeDelta = TimeDelta::minutes(10);

/// The kind of a sensitive change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensitiveAction {
    /// A change of the member's credentials: password, second factor, passkeys. A recent sign-in
    /// alone is not sufficient (ASVS 5.0, 7.5.1).
    Credentials,
    /// A change of what the team trusts: API keys, members and their roles, webhooks and their
    /// secrets. A recent sign-in with a password is sufficient (ASVS 5.0, 7.5.3).
    Team,
    /// A change of the versions that new sessions of all teams run. The same is sufficient.
    Publication,
}

/// The times at which the member of a sign-in has authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticationTimes {
    /// The time of a sign-in with a password; `None` for a sign-in through an identity provider,
    /// which may not have asked the member to authenticate.
    pub signed_in_at: Option<DateTime<Utc>>,
    /// The time of the last re-authentication in this sign-in.
    pub confirmed_at: Option<DateTime<Utc>>,
}

impl SensitiveAction {
    /// Returns whether a change of this kind may be made now.
    #[must_use]
    pub fn is_confirmed(self, times: AuthenticationTimes, now: DateTime<Utc>) -> bool {
        let is_recent =
            |at: Option<DateTime<Utc>>| at.is_some_and(|at| now - at < REAUTHENTICATION_TTL);
        is_recent(times.confirmed_at)
            || match self {
                Self::Credentials => false,
                Self::Team | Self::Publication => is_recent(times.signed_in_at),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_need_a_recent_confirmation_and_all_else_a_recent_sign_in() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let ago = |seconds| Some(now - TimeDelta::seconds(seconds));
        let table = [
            (None, None, [false; 3]),
            (ago(0), None, [false, true, true]),
            (ago(599), None, [false, true, true]),
            (ago(600), None, [false; 3]),
            (None, ago(599), [true; 3]),
            (ago(3600), ago(599), [true; 3]),
            (ago(3600), ago(600), [false; 3]),
        ];
        for (signed_in_at, confirmed_at, expected) in table {
            let times = AuthenticationTimes { signed_in_at, confirmed_at };
            let actions =
                [SensitiveAction::Credentials, SensitiveAction::Team, SensitiveAction::Publication];
            let confirmed = actions.map(|action| action.is_confirmed(times, now));
            assert_eq!(confirmed, expected, "{times:?}");
        }
    }
}
