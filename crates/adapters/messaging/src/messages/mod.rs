//! Short messages, sent through providers' HTTP interfaces.

pub(crate) mod sms;
pub(crate) mod whatsapp;

use domain::secret::Secret;
use http_client::InvalidUrl;

/// The reason why an account at a provider is invalid; the text follows the name of its setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidAccount {
    #[error("url {0}")]
    Url(#[from] InvalidUrl),
    #[error("key must be USER:PASSWORD: the account's identifier or an API key's, and its secret")]
    Key,
    #[error("from must be an E.164 number, a messaging service (MG…), a short code or a name")]
    From,
    #[error("token must be the characters of a bearer token")]
    Token,
    #[error("template must be NAME:LANGUAGE,…, such as account_link:en,pt_BR")]
    Template,
}

/// Returns the text as a secret if it is valid in a header: 1 to 1,000 visible ASCII characters.
fn secret(text: &str) -> Option<Secret> {
    let is_valid =
        (1..=1_000).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid.then(|| Secret::new(text.to_owned()))
}
