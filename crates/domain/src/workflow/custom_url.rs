//! The address that a session opens in place of a fixed one: a page of the account, which the partner
//! or the applicant gives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Definition, condition::matches_url};
use crate::https_url::HttpsUrl;

/// The placeholder of the whole address in a URL: the URL is exactly that.
pub(super) const CUSTOM_URL: &str = "{customUrl}";
/// The placeholder of the scheme and the host of the address, with which a URL begins.
pub(super) const CUSTOM_ORIGIN: &str = "{customOrigin}";

/// The address that each session gives: `customUrl` when the partner creates it, or else what the
/// applicant enters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomUrl {
    /// A pattern for the path of the address; `*` matches any sequence of characters. The host must
    /// be one of `hosts`.
    pub pattern: String,
    /// The key of the text that asks the applicant for the address.
    pub text_key: String,
    /// The key of the text that asks again after an address that does not match.
    pub wrong_text_key: String,
    /// How long the applicant has: 5 to 3,600.
    pub timeout_seconds: u32,
}

/// An address that sessions of a definition may open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomAddress(String);

impl CustomAddress {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the scheme, the host and the port (RFC 6454).
    fn origin(&self) -> &str {
        let start = self.0.find("://").map_or(0, |at| at + 3);
        let rest = self.0.get(start..).unwrap_or_default();
        let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        self.0.get(..start + length).unwrap_or_default()
    }
}

impl Definition {
    /// Returns the address that a text is, if sessions of this definition may open it: an `https` URL
    /// of up to 2,048 characters on one of the hosts, without a port, with a path that matches the
    /// pattern. The scheme may be left out. As in a definition, sites under `localhost` may use `http`
    /// and other ports.
    #[must_use]
    pub fn custom_address(&self, text: &str) -> Option<CustomAddress> {
        let custom = self.custom_url.as_ref()?;
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let url = HttpsUrl::new(&format!("https://{rest}"))?;
        let (host, port) = url.host_and_port();
        let host = host.to_ascii_lowercase();
        let is_local = host.ends_with(".localhost");
        let is_https = scheme.eq_ignore_ascii_case("https");
        let is_allowed = (is_https || (is_local && scheme == "http"))
            && port.is_none_or(|port| port == "443" || is_local)
            && self.hosts.contains(&host)
            && !has_dot_segment(url.as_str())
            && matches_url(&custom.pattern, url.as_str());
        let scheme = if is_https { "https" } else { "http" };
        is_allowed.then(|| CustomAddress(format!("{scheme}://{rest}")))
    }
}

/// Returns whether browsers would open another path than the one that is written (WHATWG URL Standard,
/// section 4.1).
fn has_dot_segment(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let path = path.replace("%2e", ".");
    path.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Returns a URL of the definition with the scheme and the host of the address in place of their
/// placeholder. `None` if there is no address.
pub(super) fn expand(url: &str, address: Option<&CustomAddress>) -> Option<String> {
    match url.strip_prefix(CUSTOM_ORIGIN) {
        Some(rest) => Some(format!("{}{rest}", address?.origin().to_ascii_lowercase())),
        None => Some(url.to_owned()),
    }
}

/// Returns whether a URL of the definition has a placeholder for the address.
pub(super) fn is_used_in(url: &str) -> bool {
    url == CUSTOM_URL || url.starts_with(CUSTOM_ORIGIN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition() -> Definition {
        let sandbox = include_str!("../../platforms/sandbox.json");
        let mut definition: serde_json::Value = serde_json::from_str(sandbox).unwrap();
        definition["hosts"] = json!(["forum.example", "a.localhost"]);
        definition["customUrl"] = json!({
            "pattern": "/users/*", "textKey": "a", "wrongTextKey": "b", "timeoutSeconds": 60,
        });
        serde_json::from_value(definition).unwrap()
    }

    #[test]
    fn addresses_of_the_platform_are_opened() {
        for (text, opened) in [
            ("https://forum.example/users/ada", "https://forum.example/users/ada"),
            (" forum.example/users/ada?x=1#y ", "https://forum.example/users/ada?x=1#y"),
            ("HTTPS://Forum.Example:443/users/", "https://Forum.Example:443/users/"),
            ("http://a.localhost:8080/users/1", "http://a.localhost:8080/users/1"),
        ] {
            let address = definition().custom_address(text);
            assert_eq!(address.as_ref().map(CustomAddress::as_str), Some(opened));
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for text in [
            "",
            "ada",
            "/users/ada",
            "https://forum.example/",
            "https://forum.example/users",
            "https://forum.example/users/../admin",
            "https://forum.example/users/%2E%2e/admin",
            "https://forum.example/users/.%2e",
            "https://forum.example.evil.example/users/ada",
            "https://evil.example/users/ada",
            "https://ada@forum.example/users/ada",
            "https://forum.example:8443/users/ada",
            "http://forum.example/users/ada",
            "ftp://forum.example/users/ada",
            "javascript://forum.example/users/%0aalert(1)",
            "https://forum.example\\@evil.example/users/ada",
            "https://forum.example/users/a b",
            "https://forum.example/users/\u{202e}",
            "https://*.example/users/ada",
            "https://127.0.0.1/users/ada",
        ] {
            assert_eq!(definition().custom_address(text), None, "{text}");
        }
        let long = format!("https://forum.example/users/{}", "a".repeat(2048));
        assert_eq!(definition().custom_address(&long), None);
    }

    #[test]
    fn requests_go_to_the_origin_of_the_address() {
        let address = definition().custom_address("Forum.Example/users/ada/x?y").unwrap();
        let expand = |url| expand(url, Some(&address)).unwrap();
        assert_eq!(expand("{customOrigin}/api/me"), "https://forum.example/api/me");
        assert_eq!(expand("https://a.test/{id}"), "https://a.test/{id}");
        assert_eq!(super::expand("{customOrigin}/api/me", None), None);
    }
}
