//! The URLs of providers' interfaces.

use std::{fmt, str::FromStr};

use url::{Host, Url};

/// The base URL of a provider's interface: over TLS or on this machine, without a password, a query or a
/// fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("must be https:// without a password, query or fragment; http:// to 127.0.0.1 or [::1]")]
pub struct InvalidUrl;

impl FromStr for BaseUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let url = Url::parse(text).map_err(|_| InvalidUrl)?;
        let loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(_)) | None => false,
        };
        let secure = url.scheme() == "https" || (url.scheme() == "http" && loopback);
        let without_user = url.username().is_empty() && url.password().is_none();
        let path_only = url.query().is_none() && url.fragment().is_none();
        if secure && without_user && path_only { Ok(Self(url)) } else { Err(InvalidUrl) }
    }
}

impl BaseUrl {
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Appends a path; returns the same URL if the result is invalid.
    #[must_use]
    pub fn join(&self, path: &str) -> Self {
        let text = format!("{}/{path}", self.0.as_str().trim_end_matches('/'));
        text.parse().unwrap_or_else(|_| self.clone())
    }
}

/// Shows the origin without the path, which may name an account.
impl fmt::Debug for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tls_and_loopback_urls_without_credentials_are_accepted() {
        for valid in ["https://api.example/v1/", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"] {
            assert!(valid.parse::<BaseUrl>().is_ok(), "{valid}");
        }
        for invalid in [
            "http://api.example/v1",
            "http://localhost/v1",
            "https://a:b@api.example/v1",
            "https://api.example/v1?x=1",
            "ftp://api.example",
            "",
        ] {
            assert_eq!(invalid.parse::<BaseUrl>(), Err(InvalidUrl), "{invalid}");
        }
    }

    #[test]
    fn a_path_is_appended_with_or_without_a_trailing_slash() {
        for account in ["https://api.example/v1/", "https://api.example/v1"] {
            let account: BaseUrl = account.parse().unwrap();
            assert_eq!(account.join("messages").as_str(), "https://api.example/v1/messages");
            assert!(!format!("{account:?}").contains("v1"));
        }
    }
}
