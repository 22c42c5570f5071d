//! The person who verifies: contact and the partner's own metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{InvalidRequest, read::Reader};

const METADATA_MEMBERS: usize = 20;
const METADATA_NAME: usize = 64;
const METADATA_VALUE: usize = 512;

/// Contact data; no part of it but `metadata` ever leaves in a response or delivery.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    pub name: Option<String>,
    pub email: Option<String>,
    /// E.164, with the leading `+`.
    pub phone: Option<String>,
    /// BCP 47.
    pub locale: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

impl Contact {
    /// A contact to be registered; what is empty is not there.
    ///
    /// # Errors
    /// Every finding: a member that is none, or neither an e-mail address nor a phone number.
    pub fn contact(
        name: &str,
        email: &str,
        phone: &str,
        locale: &str,
    ) -> Result<Self, InvalidRequest> {
        let members = [("name", name), ("email", email), ("phone", phone), ("locale", locale)];
        let given = members.into_iter().filter(|(_, text)| !text.is_empty());
        let object = given.map(|(name, text)| (name.to_owned(), text.into())).collect();
        let (receiver, mut reader) = Self::read(&object, "");
        if receiver.email.is_none() && receiver.phone.is_none() {
            reader.finding("email", "or phone must be given");
        }
        match reader.into_findings() {
            findings if findings.is_empty() => Ok(receiver),
            findings => Err(InvalidRequest(findings)),
        }
    }

    /// What is given here, and of somebody registered what is not.
    #[must_use]
    pub fn or(self, registered: &Self) -> Self {
        Self {
            name: self.name.or_else(|| registered.name.clone()),
            email: self.email.or_else(|| registered.email.clone()),
            phone: self.phone.or_else(|| registered.phone.clone()),
            locale: self.locale.or_else(|| registered.locale.clone()),
            metadata: self.metadata,
        }
    }

    /// Unknown members are left out.
    pub(super) fn read<'a>(
        object: &'a Map<String, Value>,
        prefix: &'static str,
    ) -> (Self, Reader<'a>) {
        let mut reader = Reader::new(object, prefix);
        let name = reader.text("name", 200).map(str::to_owned);
        let email = reader.text("email", 254).map(str::to_owned);
        if email.as_deref().is_some_and(|email| !is_email(email)) {
            reader.finding("email", "must be an e-mail address");
        }
        let phone = reader.text("phone", 16).map(str::to_owned);
        if phone.as_deref().is_some_and(|phone| !is_e164(phone)) {
            reader.finding("phone", "must be an E.164 number such as +15551234567");
        }
        let locale = reader.text("locale", 35).map(str::to_owned);
        if locale.as_deref().is_some_and(|locale| !is_language_tag(locale)) {
            reader.finding("locale", "must be a BCP 47 language tag");
        }
        let metadata = metadata(&mut reader);
        (Self { name, email, phone, locale, metadata }, reader)
    }
}

fn metadata(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let Some(object) = reader.object("metadata") else {
        return BTreeMap::new();
    };
    if object.len() > METADATA_MEMBERS {
        reader.finding("metadata", "must have at most 20 members");
        return BTreeMap::new();
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in object {
        match value.as_str() {
            None => reader.finding("metadata", "must hold strings only"),
            Some(text)
                if name.chars().count() > METADATA_NAME
                    || text.chars().count() > METADATA_VALUE
                    || name.contains('\0')
                    || text.contains('\0') =>
            {
                reader.finding(
                    "metadata",
                    "must have names of at most 64 and values of at most 512 characters, without NUL",
                );
            }
            Some(text) => {
                metadata.insert(name.clone(), text.to_owned());
            }
        }
    }
    metadata
}

/// Deliberately loose: an address is proved by a mail that arrives, not by its form.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !local.is_empty()
        && domain.contains('.')
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !text.chars().any(char::is_whitespace)
}

fn is_e164(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|digits| {
        (7..=15).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0')
    })
}

fn is_language_tag(text: &str) -> bool {
    let mut subtags = text.split('-');
    let language = subtags.next().unwrap_or_default();
    (2..=8).contains(&language.len())
        && language.bytes().all(|b| b.is_ascii_alphabetic())
        && subtags.all(|subtag| {
            (1..=8).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}
