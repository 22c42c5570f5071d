//! The devices that a session is bound to, and the codes with which another device joins.
//!
//! The first device that starts a session owns it. From then on, the link alone gives no access.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};

use crate::id::SessionId;

/// The maximum number of devices of one session.
pub const MAX_DEVICES: i32 = 8;
/// The number of wrong short codes after which a new code is needed.
pub const MAX_CODE_TRIES: i32 = 5;
/// How long a code that a device shows is valid.
pub const SHOWN_CODE_TTL: TimeDelta = TimeDelta::minutes(5);
/// How long a code that was sent to the applicant is valid.
pub const SENT_CODE_TTL: TimeDelta = TimeDelta::minutes(30);
/// The decimal digits of a short code: one of 10^8 codes, of which [`MAX_CODE_TRIES`] can be
/// tried.
pub const SHORT_CODE_DIGITS: usize = 8;
/// The length of a device's secret and of a long code: 256 bits in base64url (RFC 4648,
/// section 5).
pub const SECRET_CHARS: usize = 43;

/// The keyed hash of a device's secret or of a code. The plain value is not stored.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

/// The number of a device within its session, in the order of joining, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber(pub i32);

impl fmt::Display for DeviceNumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "device {}", self.0)
    }
}

/// How a device joined its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinedBy {
    /// The device started the session.
    Start,
    /// With a code that another device of the session showed.
    ShownCode,
    /// With a code that was sent over the session's channel.
    SentCode,
    /// With the approval of the active viewer.
    Approval,
}

impl JoinedBy {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::ShownCode => "shown_code",
            Self::SentCode => "sent_code",
            Self::Approval => "approval",
        }
    }
}

/// A code with which one more device can join a session, once.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinCode {
    pub session: SessionId,
    /// [`JoinedBy::ShownCode`] or [`JoinedBy::SentCode`]: a session has at most one code of each.
    pub by: JoinedBy,
    /// For a QR code or a link: [`SECRET_CHARS`] characters.
    pub long: SecretHash,
    /// For typing: [`SHORT_CODE_DIGITS`] digits.
    pub short: Option<SecretHash>,
    pub expires_at: DateTime<Utc>,
}

/// Returns whether a text has the form of a device's secret or a long code.
#[must_use]
pub fn is_secret(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.len() == SECRET_CHARS && text.bytes().all(allowed)
}

/// Normalizes a typed short code to its digits, without spaces and hyphens. `None` if the text is
/// not a short code.
#[must_use]
pub fn short_code(typed: &str) -> Option<String> {
    if typed.len() > 2 * SHORT_CODE_DIGITS {
        return None;
    }
    let digits: String = typed.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let valid = digits.len() == SHORT_CODE_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
    valid.then_some(digits)
}

/// Makes a short code from random bits. All codes are equally likely, up to 1 in 10^11.
#[must_use]
pub fn short_code_of(bits: [u8; 32]) -> String {
    let number = bits.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let number = number.rem_euclid(100_000_000);
    format!("{number:0SHORT_CODE_DIGITS$}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_short_code_is_parsed_with_spaces_and_hyphens() {
        assert_eq!(short_code("1234 5678").as_deref(), Some("12345678"));
        assert_eq!(short_code("1234-5678").as_deref(), Some("12345678"));
        for wrong in ["", "1234567", "123456789", "1234567a", "１２３４５６７８", &" ".repeat(40)]
        {
            assert_eq!(short_code(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_secret_is_43_characters_of_base64url() {
        assert!(is_secret(&"aZ0-_".repeat(9)[..SECRET_CHARS]));
        for wrong in [String::new(), "a".repeat(42), "a".repeat(44), "+".repeat(43)] {
            assert!(!is_secret(&wrong), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn a_generated_short_code_parses_to_itself(bits: [u8; 32]) {
            let code = short_code_of(bits);
            prop_assert_eq!(short_code(&code), Some(code));
        }

        #[test]
        fn parsing_any_text_does_not_panic(text in ".*") {
            let _ = (is_secret(&text), short_code(&text));
        }
    }
}
