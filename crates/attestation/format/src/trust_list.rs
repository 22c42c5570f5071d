//! Parses a list of attestors' keys, `{"issuers": [Issuer …]}`, as `avouch-attestor issuers` prints
//! it. A list is accepted completely or not at all, because a skipped entry could be a revocation.

use serde::Deserialize;

use crate::signed::{Issuer, MAX_ISSUERS};

/// Maximum length of a list.
pub const MAX_TRUST_LIST_BYTES: usize = 1024 * 1024;
/// Maximum length of the name of a key's owner.
const MAX_NAME_BYTES: usize = 200;

/// Why a list of keys is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustListError {
    #[error("it is longer than {MAX_TRUST_LIST_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Malformed(String),
    #[error("it lists no key, or more than {MAX_ISSUERS}")]
    Count,
    #[error("entry {0}: {1}")]
    Entry(usize, &'static str),
}

/// The list as the file contains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustListFile {
    issuers: Vec<Issuer>,
}

/// Returns the entries of a file, in its order. A key may be listed more than once:
/// [`Issuer::find`].
///
/// # Errors
/// A member is unknown, missing, duplicate, or out of its limits.
pub fn parse_trust_list(json: &[u8]) -> Result<Vec<Issuer>, TrustListError> {
    if json.len() > MAX_TRUST_LIST_BYTES {
        return Err(TrustListError::TooLong);
    }
    let list: TrustListFile = serde_json::from_slice(json)
        .map_err(|error| TrustListError::Malformed(error.to_string()))?;
    if !(1..=MAX_ISSUERS).contains(&list.issuers.len()) {
        return Err(TrustListError::Count);
    }
    for (at, issuer) in list.issuers.iter().enumerate() {
        check(issuer).map_err(|why| TrustListError::Entry(at, why))?;
    }
    Ok(list.issuers)
}

/// Returns whether the name of a key's owner is valid: up to 200 bytes, no control characters.
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
}

fn check(issuer: &Issuer) -> Result<(), &'static str> {
    if !is_valid_name(&issuer.name) {
        return Err("the name is longer than 200 bytes, or has control characters");
    }
    if issuer.key().is_none() {
        return Err("the public key is not 64 lower-case hexadecimal digits");
    }
    if issuer.valid_from >= issuer.valid_to {
        return Err("validTo is not after validFrom");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(changes: Value) -> Value {
        let mut entry = json!({
            "name": "Witness Ltd", "publicKey": "07".repeat(32), "validFrom": 1, "validTo": 2,
        });
        let Value::Object(changes) = changes else { panic!("not an object") };
        entry.as_object_mut().unwrap().extend(changes);
        entry
    }

    fn parsed(list: &Value) -> Result<Vec<Issuer>, TrustListError> {
        parse_trust_list(list.to_string().as_bytes())
    }

    #[test]
    fn a_list_keeps_its_entries() {
        let list = json!({ "issuers": [entry(json!({})), entry(json!({ "revokedAt": 7 }))] });
        let issuers = parsed(&list).unwrap();
        assert_eq!(issuers.iter().map(|one| one.revoked_at).collect::<Vec<_>>(), [None, Some(7)]);
        assert_eq!((issuers[0].valid_from, issuers[0].valid_to), (1, 2));
        let full = vec![entry(json!({})); MAX_ISSUERS];
        assert_eq!(parsed(&json!({ "issuers": full })).unwrap().len(), MAX_ISSUERS);
    }

    /// A verifier that skipped malformed entries would skip revocations.
    #[test]
    fn a_malformed_entry_invalidates_the_list() {
        let bad = |changes: Value| {
            let list = json!({ "issuers": [entry(json!({})), entry(changes.clone())] });
            assert!(parsed(&list).is_err(), "{changes}");
        };
        bad(json!({ "publicKey": "AB".repeat(32), "revokedAt": 1 }));
        bad(json!({ "publicKey": "07".repeat(31), "revokedAt": 1 }));
        bad(json!({ "publicKey": format!("{} ", "07".repeat(32)), "revokedAt": 1 }));
        bad(json!({ "publicKey": 7 }));
        bad(json!({ "revokedat": 1 }));
        bad(json!({ "revokedAt": "2026-01-01T00:00:00Z" }));
        bad(json!({ "revokedAt": -1 }));
        bad(json!({ "revokedAt": 1.5 }));
        bad(json!({ "revokedAt": true }));
        bad(json!({ "validFrom": 2 }));
        bad(json!({ "validTo": null }));
        bad(json!({ "name": "a\nb" }));
        bad(json!({ "name": "a".repeat(201) }));
    }

    #[test]
    fn lists_are_limited_and_unambiguous() {
        assert_eq!(parsed(&json!({ "issuers": [] })), Err(TrustListError::Count));
        let many = vec![entry(json!({})); MAX_ISSUERS + 1];
        assert_eq!(parsed(&json!({ "issuers": many })), Err(TrustListError::Count));
        assert_eq!(
            parse_trust_list(&vec![b' '; MAX_TRUST_LIST_BYTES + 1]),
            Err(TrustListError::TooLong)
        );
        for text in ["", "[]", "{}", "null", "{\"issuers\":null}", "{\"issuers\":[]} x"] {
            assert!(parse_trust_list(text.as_bytes()).is_err(), "{text}");
        }
        // Parsers would differ in which of two values counts.
        let twice = format!(
            "{{\"issuers\":[{{\"name\":\"a\",\"publicKey\":\"{}\",\"validFrom\":1,\"validTo\":2,\
             \"revokedAt\":5,\"revokedAt\":null}}]}}",
            "07".repeat(32)
        );
        assert!(matches!(parse_trust_list(twice.as_bytes()), Err(TrustListError::Malformed(_))));
    }
}
