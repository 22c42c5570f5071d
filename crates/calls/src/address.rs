//! Where providers are.

use std::{fmt, str::FromStr};

use url::{Host, Url};

/// The address of a provider's interface: over TLS, or on this machine; without a password, a
/// query or a fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("must be https:// without a password, query or fragment; http:// to 127.0.0.1 or [::1]")]
pub struct BadAddress;

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let url = Url::parse(text).map_err(|_| BadAddress)?;
        let here = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(_)) | None => false,
        };
        let safe = url.scheme() == "https" || (url.scheme() == "http" && here);
        let bare = url.username().is_empty() && url.password().is_none();
        let whole = url.query().is_none() && url.fragment().is_none();
        if safe && bare && whole { Ok(Self(url)) } else { Err(BadAddress) }
    }
}

impl Address {
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// What lies below it; the same where the path cannot be.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        let text = format!("{}/{path}", self.0.as_str().trim_end_matches('/'));
        text.parse().unwrap_or_else(|_| self.clone())
    }
}

/// Without the path, which may name an account.
impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0.origin().ascii_serialization())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_alone() {
        for fine in ["https://api.example/v1/", "http://127.0.0.1:1/v1", "http://[::1]:1/v1"] {
            assert!(fine.parse::<Address>().is_ok(), "{fine}");
        }
        for bad in [
            "http://api.example/v1",
            "http://localhost/v1",
            "https://a:b@api.example/v1",
            "https://api.example/v1?x=1",
            "ftp://api.example",
            "",
        ] {
            assert_eq!(bad.parse::<Address>(), Err(BadAddress), "{bad}");
        }
    }

    #[test]
    fn an_account_has_things_below_it() {
        for account in ["https://api.example/v1/", "https://api.example/v1"] {
            let account: Address = account.parse().unwrap();
            assert_eq!(account.below("messages").as_str(), "https://api.example/v1/messages");
            assert!(!format!("{account:?}").contains("v1"));
        }
    }
}
