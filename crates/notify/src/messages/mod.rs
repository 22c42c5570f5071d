//! Letters as short messages, through providers' HTTP interfaces.

pub(crate) mod sms;
pub(crate) mod whatsapp;

use calls::BadAddress;
use domain::secret::Secret;

/// What is wrong with an account at a provider, to be read after the name of its setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadAccount {
    #[error("url {0}")]
    Url(#[from] BadAddress),
    #[error("key must be USER:PASSWORD: the account's identifier or an API key's, and its secret")]
    Key,
    #[error("from must be an E.164 number, a messaging service (MG…), a short code or a name")]
    From,
    #[error("token must be the characters of a bearer token")]
    Token,
    #[error("template must be NAME:LANGUAGE,…, such as account_link:en,pt_BR")]
    Template,
}

/// A secret that fits into a header.
fn secret(text: &str) -> Option<Secret> {
    let fits =
        (1..=1_000).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| Secret::new(text.to_owned()))
}
