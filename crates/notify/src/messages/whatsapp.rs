//! WhatsApp, through Meta's Cloud API: a template that Meta has approved, with three gaps.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use calls::{Address, Caller, Content, Credentials};
use domain::notification::NotificationFailure;
use ports::notifier::{Notification, Notifier, SendError};
use serde_json::{Value, json};

use super::{BadAccount, secret};
use crate::mail::words;

/// A number that messages are sent from.
#[derive(Clone)]
pub struct WhatsappAccount {
    /// `https://graph.facebook.com/VERSION/PHONE_NUMBER_ID`
    url: Address,
    token: Credentials,
    template: Template,
}

impl fmt::Debug for WhatsappAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WhatsappAccount")
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

impl WhatsappAccount {
    /// # Errors
    /// The first value that cannot be.
    pub fn new(url: &str, token: &str, template: &str) -> Result<Self, BadAccount> {
        let token = Credentials::Bearer(secret(token).ok_or(BadAccount::Token)?);
        let template = Template::of(template).ok_or(BadAccount::Template)?;
        Ok(Self { url: url.parse()?, token, template })
    }
}

/// The name of a template, and the languages that it is approved in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template {
    name: String,
    /// As Meta writes them: `en`, `pt_BR`. The first is for who speaks none of them.
    languages: Vec<String>,
}

impl Template {
    fn of(text: &str) -> Option<Self> {
        let (name, languages) = text.split_once(':')?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_name = (1..=512).contains(&name.len()) && name.chars().all(fits);
        let languages: Vec<_> = languages.split(',').map(str::to_owned).collect();
        let known = languages.iter().all(|tag| {
            (2..=6).contains(&tag.len()) && tag.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
        });
        (is_name && known).then(|| Self { name: name.to_owned(), languages })
    }

    /// The one nearest to what somebody speaks (BCP 47).
    fn language(&self, locale: Option<&str>) -> Option<&str> {
        let asked = locale.unwrap_or_default().replace('-', "_");
        let first = |tag: &str| tag.split('_').next().unwrap_or_default().to_ascii_lowercase();
        let mut all = self.languages.iter().map(String::as_str);
        let same = all.clone().find(|tag| tag.eq_ignore_ascii_case(&asked));
        let near = all.clone().find(|tag| first(tag) == first(&asked));
        same.or(near).or_else(|| all.next())
    }
}

/// Sends letters as WhatsApp messages.
pub struct Whatsapp {
    account: WhatsappAccount,
    caller: Arc<Caller>,
}

impl Whatsapp {
    #[must_use]
    pub const fn new(account: WhatsappAccount, caller: Arc<Caller>) -> Self {
        Self { account, caller }
    }
}

/// The message object.
fn message(template: &Template, letter: &Notification) -> Value {
    let gaps = [words::sender(letter), &letter.platform, &letter.link].map(gap);
    json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": letter.address,
        "type": "template",
        "template": {
            "name": template.name,
            "language": { "code": template.language(letter.locale.as_deref()) },
            "components": [{ "type": "body", "parameters": gaps }],
        },
        // Comes back in the provider's reports: what is said twice can be told.
        "biz_opaque_callback_data": letter.id.to_string(),
    })
}

/// The text of a gap, which has no line breaks, tabs, or many blanks in a row.
fn gap(text: &str) -> Value {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({ "type": "text", "text": crate::one_line(&text) })
}

#[async_trait]
impl Notifier for Whatsapp {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        let account = &self.account;
        let content = Content::json(&message(&account.template, letter));
        let messages = account.url.below("messages");
        let answer = self.caller.post(&messages, &account.token, content).await;
        let answer = answer.map_err(|error| SendError::Transient(error.to_string()))?;
        let body = answer.json();
        let taken =
            answer.is_success() && body.pointer("/messages/0/id").is_some_and(Value::is_string);
        if taken {
            Ok(())
        } else {
            Err(refusal(answer.status, body.pointer("/error/code").and_then(Value::as_i64)))
        }
    }
}

/// What an error of the provider means; its texts may name the receiver and are left out.
fn refusal(status: u16, code: Option<i64>) -> SendError {
    let detail = format!("WhatsApp answered {status}, code {}", code.unwrap_or_default());
    let why = match code {
        // Not to be reached: no WhatsApp at that number.
        Some(131_026) => NotificationFailure::UnknownReceiver,
        // Not among the numbers of a trial; sender and receiver are one; not now, for the
        // receiver's own good; does not want messages; a country that is not sent to.
        Some(131_030 | 131_021 | 131_049 | 131_050 | 130_497) => NotificationFailure::Rejected,
        _ => return SendError::Transient(detail),
    };
    SendError::Permanent { why, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://graph.facebook.com/v23.0/106540352242922";

    #[test]
    fn the_nearest_language_of_a_template_is_taken() {
        let template = Template::of("account_link:en,pt_BR,pt_PT,de").unwrap();
        for (locale, language) in [
            (Some("pt-PT"), "pt_PT"),
            (Some("pt-br"), "pt_BR"),
            (Some("pt"), "pt_BR"),
            (Some("de-AT"), "de"),
            (Some("ja"), "en"),
            (None, "en"),
        ] {
            assert_eq!(template.language(locale), Some(language), "{locale:?}");
        }
    }

    #[test]
    fn an_account_is_checked_and_not_printed() {
        let account = WhatsappAccount::new(URL, "EAAhush", "account_link:en").unwrap();
        assert!(!format!("{account:?}").contains("hush"));
        for template in ["", "account_link", "account_link:", "Account:en", "a:en,", "a:e n"] {
            let bad = WhatsappAccount::new(URL, "EAAhush", template).unwrap_err();
            assert_eq!(bad, BadAccount::Template, "{template}");
        }
        let bad = WhatsappAccount::new(URL, "EAA\nhush", "account_link:en").unwrap_err();
        assert_eq!(bad, BadAccount::Token);
    }

    #[test]
    fn a_gap_is_one_line() {
        assert_eq!(gap("A\n\tB     C\u{0}")["text"], "A B C");
    }
}
