//! WhatsApp, through Meta's Cloud API: a template that Meta has approved, with three parameters.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use domain::notification::NotificationFailure;
use http_client::{ApiCredentials, BaseUrl, HttpClient, RequestBody};
use ports::notifier::{Notification, Notifier, SendError};
use serde_json::{Value, json};

use super::{InvalidAccount, secret};
use crate::mail::translations;

/// A phone number at the provider, from which messages are sent.
#[derive(Clone)]
pub struct WhatsappAccount {
    /// `https://graph.facebook.com/VERSION/PHONE_NUMBER_ID`
    url: BaseUrl,
    token: ApiCredentials,
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
    /// Validates the values of an account.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn new(url: &str, token: &str, template: &str) -> Result<Self, InvalidAccount> {
        let token = ApiCredentials::Bearer(secret(token).ok_or(InvalidAccount::Token)?);
        let template = Template::parse(template).ok_or(InvalidAccount::Template)?;
        Ok(Self { url: url.parse()?, token, template })
    }
}

/// The name of a template, and the languages that it is approved in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template {
    name: String,
    /// In Meta's notation: `en`, `pt_BR`. The first one is the fallback.
    languages: Vec<String>,
}

impl Template {
    fn parse(text: &str) -> Option<Self> {
        let (name, languages) = text.split_once(':')?;
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let is_name = (1..=512).contains(&name.len()) && name.chars().all(is_allowed);
        let languages: Vec<_> = languages.split(',').map(str::to_owned).collect();
        let valid_languages = languages.iter().all(|tag| {
            (2..=6).contains(&tag.len()) && tag.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
        });
        (is_name && valid_languages).then(|| Self { name: name.to_owned(), languages })
    }

    /// Returns the language that is nearest to the locale (BCP 47).
    fn language(&self, locale: Option<&str>) -> Option<&str> {
        let requested = locale.unwrap_or_default().replace('-', "_");
        let first = |tag: &str| tag.split('_').next().unwrap_or_default().to_ascii_lowercase();
        let mut all = self.languages.iter().map(String::as_str);
        let same = all.clone().find(|tag| tag.eq_ignore_ascii_case(&requested));
        let related = all.clone().find(|tag| first(tag) == first(&requested));
        same.or(related).or_else(|| all.next())
    }
}

/// Sends notifications as WhatsApp messages.
pub struct Whatsapp {
    account: WhatsappAccount,
    client: Arc<HttpClient>,
}

impl Whatsapp {
    #[must_use]
    pub const fn new(account: WhatsappAccount, client: Arc<HttpClient>) -> Self {
        Self { account, client }
    }
}

/// Returns the message object of the API.
fn message(template: &Template, letter: &Notification) -> Value {
    let parameters =
        [translations::sender(letter), &letter.platform, &letter.link].map(text_parameter);
    json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": letter.address,
        "type": "template",
        "template": {
            "name": template.name,
            "language": { "code": template.language(letter.locale.as_deref()) },
            "components": [{ "type": "body", "parameters": parameters }],
        },
        // Returned in the provider's reports, by which duplicates can be detected.
        "biz_opaque_callback_data": letter.id.to_string(),
    })
}

/// Returns a text parameter, which must not contain line breaks, tabs or many consecutive spaces.
fn text_parameter(text: &str) -> Value {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({ "type": "text", "text": crate::one_line(&text) })
}

#[async_trait]
impl Notifier for Whatsapp {
    async fn send(&self, letter: &Notification) -> Result<(), SendError> {
        let account = &self.account;
        let content = RequestBody::json(&message(&account.template, letter));
        let messages = account.url.join("messages");
        let response = self.client.post(&messages, &account.token, content).await;
        let response = response.map_err(|error| SendError::Transient(error.to_string()))?;
        let body = response.json();
        let accepted =
            response.is_success() && body.pointer("/messages/0/id").is_some_and(Value::is_string);
        if accepted {
            Ok(())
        } else {
            Err(send_error(response.status, body.pointer("/error/code").and_then(Value::as_i64)))
        }
    }
}

/// Converts an error of the provider, without its text, which may contain the recipient's number.
fn send_error(status: u16, code: Option<i64>) -> SendError {
    let detail = format!("WhatsApp responded with {status}, code {}", code.unwrap_or_default());
    let why = match code {
        // Undeliverable: no WhatsApp account with that number.
        Some(131_026) => NotificationFailure::UnknownReceiver,
        // Not an allowed recipient of a test number; sender and recipient are the same; limited to
        // protect the recipient; opted out of messages; a restricted country.
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
    fn the_nearest_language_of_a_template_is_used() {
        let template = Template::parse("account_link:en,pt_BR,pt_PT,de").unwrap();
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
    fn an_account_is_validated_and_its_secret_not_printed() {
        let account = WhatsappAccount::new(URL, "EAAhush", "account_link:en").unwrap();
        assert!(!format!("{account:?}").contains("hush"));
        for template in ["", "account_link", "account_link:", "Account:en", "a:en,", "a:e n"] {
            let error = WhatsappAccount::new(URL, "EAAhush", template).unwrap_err();
            assert_eq!(error, InvalidAccount::Template, "{template}");
        }
        let error = WhatsappAccount::new(URL, "EAA\nhush", "account_link:en").unwrap_err();
        assert_eq!(error, InvalidAccount::Token);
    }

    #[test]
    fn a_text_parameter_is_one_line() {
        assert_eq!(text_parameter("A\n\tB     C\u{0}")["text"], "A B C");
    }
}
