//! Audit events: the actions of members in the portal, chained by hashes so that a change of the
//! log is detected.

use std::{fmt::Write as _, net::IpAddr};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::id::TeamId;

/// The maximum length of a subject; a longer one is cut off.
const MAX_SUBJECT_CHARS: usize = 300;

/// An action of a member, recorded when or before it was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    pub at: DateTime<Utc>,
    /// The member's e-mail address.
    pub actor: String,
    pub address: Option<IpAddr>,
    /// The name of the action, such as `key.rotate`.
    pub action: String,
    /// The object of the action; without secrets.
    pub subject: String,
}

/// An entry of a team's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The number of the entry in the team's log, from 1.
    pub number: i64,
    pub event: AuditEvent,
    /// SHA-256 over the hash of the previous entry and [`AuditEvent::text`].
    pub hash: [u8; 32],
}

impl AuditEntry {
    /// Returns the hash in hexadecimal digits.
    #[must_use]
    pub fn hash_text(&self) -> String {
        self.hash.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl AuditEvent {
    #[must_use]
    pub fn new(at: DateTime<Utc>, actor: &str, action: &str, subject: &str) -> Self {
        let subject = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        Self { at, actor: actor.to_owned(), address: None, action: action.to_owned(), subject }
    }

    #[must_use]
    pub fn from(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Returns the text that is hashed: each part is prefixed with its length in bytes, so that no
    /// two events have the same text.
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
    fn different_events_have_different_texts() {
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
