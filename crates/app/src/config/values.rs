//! Parses and validates single values; errors are recorded and parsing continues.

use std::{collections::BTreeMap, net::SocketAddr, ops::RangeInclusive, path::Path};

use application::settings::Limits;
use domain::rate::RateLimit;
use objects::ObjectStorage;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use store::Encryption;
use system::encryption::{EncryptionKeys, InvalidEncryptionKeys};

use super::{BrowserConfig, KEYS, SECRETS};

/// Reads the listen address.
pub(super) fn socket(text: &str, key: &str, faults: &mut Vec<String>) -> Option<SocketAddr> {
    let address = text.parse().ok();
    if address.is_none() {
        faults.push(format!("{key} must be ADDRESS:PORT"));
    }
    address
}

pub(super) fn within(
    text: &str,
    key: &str,
    range: RangeInclusive<u64>,
    faults: &mut Vec<String>,
) -> u64 {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.unwrap_or_else(|| {
        faults.push(format!("{key} must be {} to {}", range.start(), range.end()));
        *range.start()
    })
}

/// Reads country codes that commas separate.
pub(super) fn country_codes(list: &str) -> Vec<String> {
    list.split(',').map(|code| code.trim().to_ascii_uppercase()).collect()
}

pub(super) fn seal_keys(text: &str, faults: &mut Vec<String>) -> EncryptionKeys {
    let keys = text
        .parse()
        .map_err(|error: InvalidEncryptionKeys| faults.push(format!("seal_keys: {error}")));
    keys.unwrap_or_default()
}

pub(super) fn encryption(text: &str, faults: &mut Vec<String>) -> Encryption {
    match text {
        "prepare" => Encryption::Prepare,
        "on" => Encryption::On,
        "required" => Encryption::Required,
        _ => {
            faults.push("encryption must be prepare, on or required".into());
            Encryption::default()
        }
    }
}

pub(super) fn storage(
    url: Option<&String>,
    data_dir: &Path,
    faults: &mut Vec<String>,
) -> ObjectStorage {
    let Some(url) = url else { return ObjectStorage::Folder(data_dir.join("objects")) };
    ObjectStorage::parse(url, std::env::vars()).unwrap_or_else(|| {
        faults.push("storage_url must be file://FOLDER or s3://BUCKET/PREFIX".into());
        ObjectStorage::Folder(data_dir.to_owned())
    })
}

pub(super) fn checked_url(url: Option<&String>, faults: &mut Vec<String>) -> Option<String> {
    let fine =
        |url: &str| url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if url.is_some_and(|url| !fine(url)) {
        faults.push("egress_check_url must be an http or https URL".into());
    }
    url.cloned()
}

/// Reads the additionally trusted certificates.
pub(super) fn roots(
    file: Option<&String>,
    browser: &BrowserConfig,
    faults: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    if let (Some(_), BrowserConfig::Here { sandbox: false, .. }) = (file, browser) {
        faults
            .push("egress_roots needs browser_jail to be on: browsers learn of them there".into());
    }
    certificates(file, "egress_roots", faults)
}

/// Returns the certificates of a PEM file (RFC 7468), if there is one.
pub(super) fn certificates(
    file: Option<&String>,
    key: &str,
    faults: &mut Vec<String>,
) -> Vec<Vec<u8>> {
    let Some(file) = file else { return vec![] };
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if !found.is_empty() => found.iter().map(|root| root.to_vec()).collect(),
        Ok(_) => {
            faults.push(format!("{key}: there is no certificate in {file}"));
            vec![]
        }
        Err(error) => {
            faults.push(format!("{key}: {file} cannot be read: {error}"));
            vec![]
        }
    }
}

/// Returns whether the value is the first of two words.
pub(super) fn one_of(
    word: &str,
    key: &str,
    first: &str,
    second: &str,
    faults: &mut Vec<String>,
) -> bool {
    if word != first && word != second {
        faults.push(format!("{key} must be {first} or {second}"));
    }
    word == first
}

pub(super) fn limit(text: &str, key: &str, faults: &mut Vec<String>) -> Option<RateLimit> {
    if text == "off" {
        return None;
    }
    text.parse().map_err(|error| faults.push(format!("{key} {error}"))).ok()
}

/// Reads values that are required together: all of them or none.
pub(super) fn together<'a>(
    values: &'a BTreeMap<String, String>,
    keys: [&str; 3],
    faults: &mut Vec<String>,
) -> Option<[&'a str; 3]> {
    let found = keys.map(|key| values.get(key).map(String::as_str));
    if let [Some(first), Some(second), Some(third)] = found {
        return Some([first, second, third]);
    }
    if found.iter().any(Option::is_some) {
        faults.push(format!("{}, {} and {} need each other", keys[0], keys[1], keys[2]));
    }
    None
}

pub(super) fn read_file(path: &Path, faults: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            faults.push(format!("{} cannot be read: {error}", path.display()));
            return values;
        }
    };
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            faults.push(format!("{} is not TOML: {}", path.display(), error.message()));
            return values;
        }
    };
    for (key, value) in table {
        let in_file = key.strip_suffix("_file").is_some_and(|key| SECRETS.contains(&key));
        if !KEYS.contains(&key.as_str()) && !in_file {
            faults.push(format!("there is no key `{key}`"));
        } else if let Some(text) = value.as_str() {
            values.insert(key, text.to_owned());
        } else if let Some(number) = value.as_integer() {
            values.insert(key, number.to_string());
        } else {
            faults.push(format!("{key} must be a string"));
        }
    }
    values
}

/// Reads the limits of the partner API. By default the limit of a team is five times that of a key.
pub(super) fn limits(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Limits {
    let text = |key: &str, default: &str| values.get(key).cloned().unwrap_or(default.to_owned());
    let requests = limit(&text("rate_limit", "120/60"), "rate_limit", faults);
    let creations = limit(&text("create_limit", "60/60"), "create_limit", faults);
    let team_creations = match values.get("team_create_limit") {
        Some(given) => limit(given, "team_create_limit", faults),
        None => creations.map(|one| RateLimit { count: one.count.saturating_mul(5), ..one }),
    };
    let recipient = limit(&text("recipient_limit", "20/86400"), "recipient_limit", faults);
    Limits { requests, creations, team_creations, recipient }
}
