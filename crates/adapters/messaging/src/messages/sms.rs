//! SMS, through Twilio's Programmable Messaging API (version 2010-04-01).

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use domain::notification::NotificationFailure;
use http_client::{ApiCredentials, BaseUrl, HttpClient, RequestBody};
use ports::notifier::{Notification, Notifier, SendError};
use serde_json::Value;

use super::{InvalidAccount, secret};
use crate::mail::translations;

/// Characters of a message, as the provider limits them.
const MAX_CHARS: usize = 1_600;

/// An account at the provider.
#[derive(Clone)]
pub struct SmsAccount {
    /// `https://api.twilio.com/2010-04-01/Accounts/AC…`
    url: BaseUrl,
    key: ApiCredentials,
    from: String,
}

impl fmt::Debug for SmsAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SmsAccount").field("from", &self.from).finish_non_exhaustive()
    }
}

impl SmsAccount {
    /// Validates the values of an account.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn new(url: &str, key: &str, from: &str) -> Result<Self, InvalidAccount> {
        let (user, password) = key.split_once(':').ok_or(InvalidAccount::Key)?;
        let user = secret(user).ok_or(InvalidAccount::Key)?.expose().to_owned();
        let password = secret(password).ok_or(InvalidAccount::Key)?;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | ' ' | '-' | '&');
        if !(1..=34).contains(&from.len()) || !from.chars().all(is_allowed) {
            return Err(InvalidAccount::From);
        }
        let key = ApiCredentials::Basic { user, password };
        Ok(Self { url: url.parse()?, key, from: from.to_owned() })
    }

    /// Returns the parameter of the sender: a messaging service, or a number or name.
    fn sender(&self) -> &'static str {
        let service = self.from.len() == 34 && self.from.starts_with("MG");
        if service { "MessagingServiceSid" } else { "From" }
    }
}

/// Sends notifications as SMS.
pub struct Sms {
    account: SmsAccount,
    client: Arc<HttpClient>,
}

impl Sms {
    #[must_use]
    pub const fn new(account: SmsAccount, client: Arc<HttpClient>) -> Self {
        Self { account, client }
    }
}

#[async_trait]
impl Notifier for Sms {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        let text = translations::message(letter)
            .map_err(|error| SendError::Transient(error.to_string()))?;
        if text.chars().count() > MAX_CHARS {
            let detail = format!("the message has more than {MAX_CHARS} characters");
            return Err(SendError::Permanent { why: NotificationFailure::Rejected, detail });
        }
        let account = &self.account;
        let fields = [("To", &*letter.address), (account.sender(), &account.from), ("Body", &text)];
        let messages = account.url.join("Messages.json");
        let response = self.client.post(&messages, &account.key, RequestBody::form(&fields)).await;
        let response = response.map_err(|error| SendError::Transient(error.to_string()))?;
        let body = response.json();
        let accepted = response.is_success() && body.pointer("/sid").is_some_and(Value::is_string);
        if accepted {
            Ok(())
        } else {
            Err(send_error(response.status, body.pointer("/code").and_then(Value::as_i64)))
        }
    }
}

/// Converts an error of the provider, without its text, which contains the recipient's number.
fn send_error(status: u16, code: Option<i64>) -> SendError {
    let detail = format!("Twilio responded with {status}, code {}", code.unwrap_or_default());
    let why = match code {
        // Invalid 'To' numbers; not a mobile number.
        Some(21_211 | 21_214 | 21_217 | 21_614) => NotificationFailure::UnknownReceiver,
        // A country that is not enabled for the account; unsubscribed; no route; a blocked text.
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
    fn an_account_is_validated_and_its_secret_not_printed() {
        let account = SmsAccount::new(URL, "SK1:hush", "+15005550006").unwrap();
        assert_eq!(account.sender(), "From");
        assert!(!format!("{account:?}").contains("hush"));
        let service = format!("MG{}", "0".repeat(32));
        let account = SmsAccount::new(URL, "SK1:hush", &service).unwrap();
        assert_eq!(account.sender(), "MessagingServiceSid");
        for key in ["", "SK1", "SK1:", ":hush", "SK1:hu sh", "SK1:hu\nsh"] {
            assert_eq!(SmsAccount::new(URL, key, "+1").unwrap_err(), InvalidAccount::Key, "{key}");
        }
        for from in ["", "a\nb", "Ünder"] {
            let error = SmsAccount::new(URL, "SK1:hush", from).unwrap_err();
            assert_eq!(error, InvalidAccount::From, "{from}");
        }
    }

    #[test]
    fn errors_of_the_recipient_are_permanent() {
        let is_permanent =
            |code| matches!(send_error(400, Some(code)), SendError::Permanent { .. });
        assert!(is_permanent(21_211) && is_permanent(21_610));
        assert!(!is_permanent(20_003) && !is_permanent(20_429) && !is_permanent(21_606));
        assert!(matches!(send_error(503, None), SendError::Transient(_)));
    }
}
