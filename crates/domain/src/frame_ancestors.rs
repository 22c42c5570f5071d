//! The origins of the pages that may embed a team's sessions in a frame.

use std::{fmt, str::FromStr};

/// The maximum number of origins of one team.
pub const MAX_FRAME_ANCESTORS: usize = 50;
const MAX_ORIGIN_BYTES: usize = 255;

/// An origin, with scheme, host and port in the syntax of `frame-ancestors` (CSP level 3,
/// section 2.3.1). The host may begin with `*.` for all its subdomains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameAncestor(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("enter origins such as https://pages.example or https://*.example:8443, without a path")]
pub struct InvalidFrameAncestor;

impl FromStr for FrameAncestor {
    type Err = InvalidFrameAncestor;

    fn from_str(text: &str) -> Result<Self, InvalidFrameAncestor> {
        let text = text.trim().to_ascii_lowercase();
        let (scheme, authority) = text.split_once("://").ok_or(InvalidFrameAncestor)?;
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let name = host.strip_prefix("*.").unwrap_or(host);
        let valid_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let valid = matches!(scheme, "https" | "http")
            && name.split('.').all(valid_label)
            && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if valid && text.len() <= MAX_ORIGIN_BYTES {
            Ok(Self(text))
        } else {
            Err(InvalidFrameAncestor)
        }
    }
}

impl FrameAncestor {
    /// Returns whether the host stands for all its subdomains.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.0.contains("://*.")
    }

    /// Returns whether the `https` origin with this host, in lower case, and port is this one or a
    /// subdomain that it stands for.
    #[must_use]
    pub fn matches_https(&self, host: &str, port: &str) -> bool {
        let Some(authority) = self.0.strip_prefix("https://") else { return false };
        let (listed_host, listed_port) = authority.split_once(':').unwrap_or((authority, "443"));
        let is_host = match listed_host.strip_prefix("*.") {
            Some(parent) => {
                let subdomain = host.strip_suffix(parent).and_then(|rest| rest.strip_suffix('.'));
                subdomain.is_some_and(|name| !name.is_empty())
            }
            None => listed_host == host,
        };
        is_host && listed_port == port
    }
}

impl fmt::Display for FrameAncestor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_cannot_inject_another_directive() {
        for (text, read) in [
            ("https://pages.example", "https://pages.example"),
            (" HTTPS://Pages.Example:8443 ", "https://pages.example:8443"),
            ("https://*.example.com", "https://*.example.com"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ] {
            assert_eq!(
                text.parse::<FrameAncestor>().map(|origin| origin.to_string()),
                Ok(read.into())
            );
        }
        for text in [
            "",
            "*",
            "https:",
            "https://",
            "https://*",
            "https://*.",
            "https://a.example/",
            "https://a.example/path",
            "https://a.example;script-src",
            "https://a example",
            "https://a.example:0",
            "https://a.example:99999",
            "https://a.example:",
            "'self'",
            "javascript://a.example",
            "https://a..example",
            "https://user@a.example",
            "https://a.*.example",
            "https://a.example\nX: y",
            "https://[::1]",
        ] {
            assert_eq!(text.parse::<FrameAncestor>(), Err(InvalidFrameAncestor), "{text}");
        }
        assert!(format!("https://{}.example", "a".repeat(300)).parse::<FrameAncestor>().is_err());
    }
}
