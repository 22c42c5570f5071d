//! What people did in the portal, in an order that cannot be changed unseen.

use std::{fmt::Write as _, net::IpAddr};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::id::TeamId;

/// The longest name of what something was done to.
const LONGEST_SUBJECT: usize = 300;

/// What somebody did, or was about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    pub at: DateTime<Utc>,
    /// Their e-mail address.
    pub actor: String,
    pub address: Option<IpAddr>,
    /// Such as `key.rotate`.
    pub action: String,
    /// What it was done to; without secrets.
    pub subject: String,
}

/// A line of a team's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Counts a team's entries from 1.
    pub number: i64,
    pub event: AuditEvent,
    /// SHA-256 over the hash of the entry before it and [`Deed::text`].
    pub hash: [u8; 32],
}

impl AuditEntry {
    /// The hash, in hexadecimal digits.
    #[must_use]
    pub fn hash_text(&self) -> String {
        self.hash.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl AuditEvent {
    #[must_use]
    pub fn new(at: DateTime<Utc>, actor: &str, action: &str, subject: &str) -> Self {
        let subject = subject.chars().take(LONGEST_SUBJECT).collect();
        Self { at, actor: actor.to_owned(), address: None, action: action.to_owned(), subject }
    }

    #[must_use]
    pub fn from(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// What is hashed: each part with its length in bytes before it, so that no two deeds have one
    /// text.
    #[must_use]
    pub fn text(&self, team: TeamId, number: i64) -> String {
        let address = self.address.map(|address| address.to_string()).unwrap_or_default();
        let parts = [
            &team.to_string(),
            &number.to_string(),
            &self.at.to_rfc3339_opts(SecondsFormat::Micros, true),
            &self.actor,
            &address,
            &self.action,
            &self.subject,
        ];
        parts.map(|part| format!("{}:{part},", part.len())).concat()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn no_two_deeds_have_one_text() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap_or_default();
        let team = TeamId::from_uuid(Uuid::nil());
        let text =
            |actor, action, subject| AuditEvent::new(at, actor, action, subject).text(team, 7);
        assert_eq!(
            text("a@b.c", "key.make", "k"),
            "36:00000000-0000-0000-0000-000000000000,1:7,27:2027-01-15T08:00:00.000000Z,5:a@b.c,0:,8:key.make,1:k,"
        );
        assert_ne!(text("a", "b,1:c", "d"), text("a", "b", "1:c,d"));
    }
}
