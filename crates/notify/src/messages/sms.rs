//! SMS, through Twilio's Programmable Messaging API (version 2010-04-01).

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use calls::{Address, Caller, Content, Credentials};
use domain::notification::NotificationFailure;
use ports::notifier::{Notification, Notifier, SendError};
use serde_json::Value;

use super::{BadAccount, secret};
use crate::mail::words;

/// Characters of a message that the provider takes.
const MOST: usize = 1_600;

/// An account at the provider.
#[derive(Clone)]
pub struct SmsAccount {
    /// `https://api.twilio.com/2010-04-01/Accounts/AC…`
    url: Address,
    key: Credentials,
    from: String,
}

impl fmt::Debug for SmsAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SmsAccount").field("from", &self.from).finish_non_exhaustive()
    }
}

impl SmsAccount {
    /// # Errors
    /// The first value that cannot be.
    pub fn new(url: &str, key: &str, from: &str) -> Result<Self, BadAccount> {
        let (user, password) = key.split_once(':').ok_or(BadAccount::Key)?;
        let user = secret(user).ok_or(BadAccount::Key)?.expose().to_owned();
        let password = secret(password).ok_or(BadAccount::Key)?;
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | ' ' | '-' | '&');
        if !(1..=34).contains(&from.len()) || !from.chars().all(known) {
            return Err(BadAccount::From);
        }
        let key = Credentials::Basic { user, password };
        Ok(Self { url: url.parse()?, key, from: from.to_owned() })
    }

    /// The parameter that says who sends: a messaging service, or a number or name.
    fn sender(&self) -> &'static str {
        let service = self.from.len() == 34 && self.from.starts_with("MG");
        if service { "MessagingServiceSid" } else { "From" }
    }
}

/// Sends letters as SMS.
pub struct Sms {
    account: SmsAccount,
    caller: Arc<Caller>,
}

impl Sms {
    #[must_use]
    pub const fn new(account: SmsAccount, caller: Arc<Caller>) -> Self {
        Self { account, caller }
    }
}

#[async_trait]
impl Notifier for Sms {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        let text =
            words::message(letter).map_err(|error| SendError::Transient(error.to_string()))?;
        if text.chars().count() > MOST {
            let detail = format!("the message has more than {MOST} characters");
            return Err(SendError::Permanent { why: NotificationFailure::Rejected, detail });
        }
        let account = &self.account;
        let fields = [("To", &*letter.address), (account.sender(), &account.from), ("Body", &text)];
        let messages = account.url.below("Messages.json");
        let answer = self.caller.post(&messages, &account.key, Content::form(&fields)).await;
        let answer = answer.map_err(|error| SendError::Transient(error.to_string()))?;
        let body = answer.json();
        let taken = answer.is_success() && body.pointer("/sid").is_some_and(Value::is_string);
        if taken {
            Ok(())
        } else {
            Err(refusal(answer.status, body.pointer("/code").and_then(Value::as_i64)))
        }
    }
}

/// What an error of the provider means; its texts name the receiver and are left out.
fn refusal(status: u16, code: Option<i64>) -> SendError {
    let detail = format!("Twilio answered {status}, code {}", code.unwrap_or_default());
    let why = match code {
        // Invalid 'To' numbers; no mobile number.
        Some(21_211 | 21_214 | 21_217 | 21_614) => NotificationFailure::UnknownReceiver,
        // A country that the account does not send to; unsubscribed; not routed; a blocked text.
        Some(21_408 | 21_610 | 21_612 | 30_004 | 30_007) => NotificationFailure::Rejected,
        _ => return SendError::Transient(detail),
    };
    SendError::Permanent { why, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str =
        "https://api.twilio.com/2010-04-01/Accounts/AC00000000000000000000000000000000";

    #[test]
    fn an_account_is_checked_and_not_printed() {
        let account = SmsAccount::new(URL, "SK1:hush", "+15005550006").unwrap();
        assert_eq!(account.sender(), "From");
        assert!(!format!("{account:?}").contains("hush"));
        let service = format!("MG{}", "0".repeat(32));
        let account = SmsAccount::new(URL, "SK1:hush", &service).unwrap();
        assert_eq!(account.sender(), "MessagingServiceSid");
        for key in ["", "SK1", "SK1:", ":hush", "SK1:hu sh", "SK1:hu\nsh"] {
            assert_eq!(SmsAccount::new(URL, key, "+1").unwrap_err(), BadAccount::Key, "{key}");
        }
        for from in ["", "a\nb", "Ünder"] {
            let bad = SmsAccount::new(URL, "SK1:hush", from).unwrap_err();
            assert_eq!(bad, BadAccount::From, "{from}");
        }
    }

    #[test]
    fn what_concerns_the_receiver_is_final() {
        let for_good = |code| matches!(refusal(400, Some(code)), SendError::Permanent { .. });
        assert!(for_good(21_211) && for_good(21_610));
        assert!(!for_good(20_003) && !for_good(20_429) && !for_good(21_606));
        assert!(matches!(refusal(503, None), SendError::Transient(_)));
    }
}
