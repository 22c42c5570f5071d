//! Masks in place of credentials, which are told by the names of members and parameters.

use serde_json::Value;

/// Parts of the names of members and parameters whose values are credentials.
const SECRET_PARTS: &[&str] = &[
    "assertion",
    "authorization",
    "cookie",
    "credential",
    "csrf",
    "passw",
    "secret",
    "sessionid",
    "session_id",
    "signature",
    "ticket",
    "token",
    "xsrf",
];
/// Whole names of such members and parameters.
const SECRET_NAMES: &[&str] = &["jwt", "otp", "pwd", "session", "sid"];
/// A part of names that are also those of data with members of its own, such as a support ticket.
const AMBIGUOUS_PART: &str = "ticket";
/// Whole names of tokens that are a position in a list, without what is between their words. No parts of
/// names: `next-auth.session-token` and `pageAccessToken` are credentials.
const POSITION_NAMES: &[&str] = &[
    "continuationtoken",
    "nextpagetoken",
    "nextsynctoken",
    "nexttoken",
    "pagetoken",
    "prevpagetoken",
    "synctoken",
];
/// Parameters of redirects between an authorization server and a client (RFC 6749, section 4.1.2).
const REDIRECT_PARAMETERS: &[&str] = &["code", "nonce", "state"];
/// Parameters by which a page tells the next one what was typed as the user name (OpenID Connect Core 1.0,
/// section 3.1.2.1, for `login_hint`).
const USER_NAME_PARAMETERS: &[&str] = &["email", "login", "login_hint", "user_name", "username"];
const MASK: &str = "masked";
const MAX_MASK_DEPTH: usize = 64;

/// What the values below a member are, by the names of the members above them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Credential,
    /// A credential, unless it has members.
    Ambiguous,
    Other,
}

/// Returns JSON in which all values of members that are credentials by their names are masked, also those
/// further below. Its objects and arrays stay as they are, up to a depth of 64.
#[must_use]
pub fn mask_json(value: Value) -> Value {
    masked(value, 0, Meaning::Other)
}

fn masked(value: Value, depth: usize, meaning: Meaning) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) if depth == MAX_MASK_DEPTH => MASK.into(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, member)| {
                let inner = meaning_of(&name, meaning);
                (name, masked(member, depth + 1, inner))
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => {
            items.into_iter().map(|item| masked(item, depth + 1, meaning)).collect()
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) if meaning != Meaning::Other => {
            MASK.into()
        }
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar,
    }
}

/// Returns what a member with this name is, in an object that is `outer`.
fn meaning_of(name: &str, outer: Meaning) -> Meaning {
    if outer == Meaning::Credential {
        return outer;
    }
    let name = name.to_ascii_lowercase();
    if !is_secret(&name) {
        return Meaning::Other;
    }
    let is_clear = is_secret(&name.replace(AMBIGUOUS_PART, ""));
    if is_clear { Meaning::Credential } else { Meaning::Ambiguous }
}

/// Returns the body of a request, which is JSON, with masks as those of [`mask_json`]. A text that is no
/// JSON is masked as a whole.
#[must_use]
pub fn mask_body(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return MASK.to_owned() };
    let masked = mask_json(value.clone());
    // A number may be written in another way than it was sent.
    if masked == value { body.to_owned() } else { masked.to_string() }
}

/// Returns a URL without the values of parameters that are credentials or user names by their names, in its
/// query and its fragment.
#[must_use]
pub fn mask_url(url: &str) -> String {
    url.split_inclusive(['?', '&', '#'])
        .map(|part| {
            let end = part.len() - usize::from(part.ends_with(['?', '&', '#']));
            let (pair, separator) = part.split_at(end);
            match pair.split_once('=') {
                Some((name, value))
                    if !value.is_empty()
                        && (is_secret(name)
                            || REDIRECT_PARAMETERS.contains(&name)
                            || USER_NAME_PARAMETERS.contains(&name)) =>
                {
                    format!("{name}={MASK}{separator}")
                }
                Some(_) | None => part.to_owned(),
            }
        })
        .collect()
}

/// Returns whether a name is that of a token that is a position in a list.
pub(super) fn is_position(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    POSITION_NAMES.contains(&name.replace(['_', '-'], "").as_str())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if is_position(&name) {
        return false;
    }
    SECRET_NAMES.contains(&name.as_str()) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_in_urls_and_json_are_masked() {
        for (url, expected) in [
            ("https://a.test/?code=1&page=2", "https://a.test/?code=masked&page=2"),
            ("https://a.test/cb#access_token=x&b=1", "https://a.test/cb#access_token=masked&b=1"),
            ("https://a.test/?page=2", "https://a.test/?page=2"),
            ("https://a.test/?state=", "https://a.test/?state="),
            ("https://a.test/2?login_hint=ada&n=2", "https://a.test/2?login_hint=masked&n=2"),
        ] {
            assert_eq!(mask_url(url), expected);
            assert_eq!(mask_url(expected), expected);
        }
        for (body, expected) in [
            (
                json!({ "id": 1, "sessionId": "x", "data": [{ "csrfToken": "y", "name": "Ada" }] }),
                json!({ "id": 1, "sessionId": "masked", "data": [{ "csrfToken": "masked", "name": "Ada" }] }),
            ),
            (json!({ "token": { "value": "eyJ" } }), json!({ "token": { "value": "masked" } })),
            (json!({ "tokens": ["eyJ", null] }), json!({ "tokens": ["masked", null] })),
            (
                json!({ "tokens": { "n": [{ "id": 7, "new": true, "of": {} }] }, "n": 7 }),
                json!({ "tokens": { "n": [{ "id": "masked", "new": "masked", "of": {} }] }, "n": 7 }),
            ),
            // What has members may be data.
            (
                json!({ "tickets": [{ "id": 7, "token": "x" }], "session": { "id": "y" } }),
                json!({ "tickets": [{ "id": 7, "token": "masked" }], "session": { "id": "masked" } }),
            ),
            (json!({ "tickets": ["x"] }), json!({ "tickets": ["masked"] })),
            // A position in a list.
            (
                json!({ "nextPageToken": "CAo", "next_token": 3 }),
                json!({ "nextPageToken": "CAo", "next_token": 3 }),
            ),
            // Credentials whose names have the same words.
            (
                json!({ "next-auth.session-token": "x", "pageAccessToken": "y", "syncAuthToken": "z" }),
                json!({ "next-auth.session-token": "masked", "pageAccessToken": "masked", "syncAuthToken": "masked" }),
            ),
        ] {
            assert_eq!(mask_json(body.clone()), expected);
            assert_eq!(mask_body(&body.to_string()), expected.to_string());
            assert_eq!(mask_json(expected.clone()), expected);
        }
    }

    #[test]
    fn a_body_without_credentials_stays_as_it_is() {
        for body in ["{ \"n\": 1.0e2,\"a\":[] }", "null", "\"token\""] {
            assert_eq!(mask_body(body), body);
        }
        assert_eq!(mask_body("token=x"), "masked");
    }

    #[test]
    fn what_is_very_deep_is_masked() {
        let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
        let masked = mask_json(deep);
        assert!(!masked.to_string().contains('x'));
        assert_eq!(mask_json(masked.clone()), masked);
    }
}
