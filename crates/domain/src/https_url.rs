//! Addresses of partners' pages, which applicants are shown as links.

use serde::{Deserialize, Serialize};

use crate::frame_ancestors::FrameAncestor;

/// The maximum length of such a URL.
pub const MAX_CHARS: usize = 2048;

/// An `https` URL of at most 2,048 characters: printable ASCII, a host name with an optional port, no
/// user name and no password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpsUrl(String);

impl HttpsUrl {
    /// Parses the text. `None` if it is not such a URL. A backslash is refused, because browsers read
    /// it as a slash and would find another host.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
        if text.len() > MAX_CHARS || !text.bytes().all(is_plain) {
            return None;
        }
        let rest = strip_https(text)?;
        let authority = rest.split(['/', '?', '#']).next()?;
        // An origin in the syntax of frame ancestors is a host name with an optional port.
        let origin: FrameAncestor = format!("https://{authority}").parse().ok()?;
        (!origin.is_wildcard()).then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the URL's origin is one of these.
    #[must_use]
    pub fn is_on(&self, origins: &[FrameAncestor]) -> bool {
        let (host, port) = self.host_and_port();
        let host = host.to_ascii_lowercase();
        origins.iter().any(|origin| origin.matches_https(&host, port.unwrap_or("443")))
    }

    /// Returns the host as it is written, and the port if there is one.
    #[must_use]
    pub fn host_and_port(&self) -> (&str, Option<&str>) {
        let rest = strip_https(&self.0).unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
    }
}

/// Returns what follows `https://`, which may be in upper case.
fn strip_https(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    scheme.eq_ignore_ascii_case("https").then_some(rest)
}

impl TryFrom<String> for HttpsUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or("not an https URL")
    }
}

impl From<HttpsUrl> for String {
    fn from(url: HttpsUrl) -> Self {
        url.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_https_url_has_a_host_and_nothing_that_hides_it() {
        for text in [
            "https://lender.example",
            "HTTPS://Lender.Example:8443/apply?step=3#end",
            "https://xn--bcher-kva.example/%C3%BC",
        ] {
            assert_eq!(HttpsUrl::new(text).unwrap().as_str(), text);
        }
        let long = format!("https://lender.example/{}", "a".repeat(MAX_CHARS));
        for text in [
            "",
            "lender.example",
            "http://lender.example",
            "javascript://lender.example/%0aalert(1)",
            "https://",
            "https:///path",
            "https://*.lender.example/",
            "https://user@lender.example/",
            "https://user:secret@lender.example/",
            "https://lender.example\\@evil.example/",
            "https:\\\\lender.example",
            "https://lender.example:0/",
            "https://lender.example:99999/",
            "https://bücher.example/",
            "https://lender.example/a b",
            "https://lender.example/\u{202e}",
            "https://[::1]/",
            &long,
        ] {
            assert_eq!(HttpsUrl::new(text), None, "{text}");
        }
    }

    #[test]
    fn an_https_url_is_on_the_origins_that_a_team_lists() {
        let origins: Vec<FrameAncestor> = [
            "https://lender.example",
            "https://*.shop.example",
            "https://a.example:8443",
            "http://b.example",
        ]
        .map(|origin| origin.parse::<FrameAncestor>().unwrap())
        .into();
        for (text, expected) in [
            ("https://lender.example/x", true),
            ("https://LENDER.example:443/x", true),
            ("https://www.shop.example?x", true),
            ("https://a.b.shop.example#x", true),
            ("https://a.example:8443/", true),
            ("https://a.example/", false),
            ("https://shop.example/", false),
            ("https://evilshop.example/", false),
            ("https://lender.example.evil.example/", false),
            ("https://lender.example:444/", false),
            ("https://b.example/", false),
        ] {
            let url = HttpsUrl::new(text).unwrap();
            assert_eq!(url.is_on(&origins), expected, "{text}");
            assert!(!url.is_on(&[]), "{text}");
        }
    }
}
