//! The events of a member's account that a notice is mailed about.

use std::str::FromStr;

use chrono::TimeDelta;

/// The age up to which a notice is retried; an older one is no longer news to the member.
pub const MAX_NOTICE_AGE: TimeDelta = TimeDelta::days(2);

/// An event of a member's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountEvent {
    PasswordChanged,
    CodesTurnedOn,
    CodesTurnedOff,
    PasskeyAdded,
    PasskeyRemoved,
    /// A sign-in from an unknown browser, to an account that has known browsers.
    NewBrowser,
}

impl AccountEvent {
    pub const ALL: [Self; 6] = [
        Self::PasswordChanged,
        Self::CodesTurnedOn,
        Self::CodesTurnedOff,
        Self::PasskeyAdded,
        Self::PasskeyRemoved,
        Self::NewBrowser,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PasswordChanged => "password_changed",
            Self::CodesTurnedOn => "codes_turned_on",
            Self::CodesTurnedOff => "codes_turned_off",
            Self::PasskeyAdded => "passkey_added",
            Self::PasskeyRemoved => "passkey_removed",
            Self::NewBrowser => "new_browser",
        }
    }
}

impl FromStr for AccountEvent {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, UnknownEvent> {
        Self::ALL.into_iter().find(|event| event.as_str() == text).ok_or(UnknownEvent)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown account event")]
pub struct UnknownEvent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_parsed_from_its_name() {
        for event in AccountEvent::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
        }
        assert_eq!("".parse::<AccountEvent>(), Err(UnknownEvent));
    }
}
