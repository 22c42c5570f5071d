//! The applicant's contact data, with the partner's own metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{InvalidRequest, read::Reader};

const MAX_METADATA_MEMBERS: usize = 20;
const MAX_METADATA_NAME_CHARS: usize = 64;
const MAX_METADATA_VALUE_CHARS: usize = 512;

/// Contact data of an applicant. Responses and deliveries contain no part of it but `metadata`.
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
    /// Parses a contact to be registered; empty texts count as absent.
    ///
    /// # Errors
    /// All findings: invalid members, or neither an e-mail address nor a phone number given.
    pub fn parse(
        name: &str,
        email: &str,
        phone: &str,
        locale: &str,
    ) -> Result<Self, InvalidRequest> {
        let members = [("name", name), ("email", email), ("phone", phone), ("locale", locale)];
        let given = members.into_iter().filter(|(_, text)| !text.is_empty());
        let object = given.map(|(name, text)| (name.to_owned(), text.into())).collect();
        let (contact, mut reader) = Self::read(&object, "");
        if contact.email.is_none() && contact.phone.is_none() {
            reader.finding("email", "or phone must be given");
        }
        match reader.into_findings() {
            findings if findings.is_empty() => Ok(contact),
            findings => Err(InvalidRequest(findings)),
        }
    }

    /// Fills absent members from a registered contact. The metadata stays as it is.
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

    /// Reads the members of an object; unknown ones are ignored.
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
    if object.len() > MAX_METADATA_MEMBERS {
        reader.finding("metadata", "must have at most 20 members");
        return BTreeMap::new();
    }
    let mut metadata = BTreeMap::new();
    for (name, value) in object {
        match value.as_str() {
            None => reader.finding("metadata", "must hold strings only"),
            Some(text)
                if name.chars().count() > MAX_METADATA_NAME_CHARS
                    || text.chars().count() > MAX_METADATA_VALUE_CHARS
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

/// Checks the form of an address loosely on purpose: only a mail that arrives proves an address.
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
