//! The address of a fleet: its endpoints, and how their browsers reach our proxy.

use std::{fmt, net::SocketAddr, path::PathBuf};

use domain::secret::Secret;
use url::{Host, Url};

/// The maximum number of endpoints of a fleet.
const MAX_ENDPOINTS: usize = 32;
const MAX_WEIGHT: u32 = 100;
/// What stands before the scheme of an endpoint's URL, and the schemes that it may have.
const KINDS: [(&str, EndpointKind, [&str; 2]); 3] = [
    ("", EndpointKind::DevTools, ["ws://", "wss://"]),
    ("selenium+", EndpointKind::Selenium, ["http://", "https://"]),
    ("browserless+", EndpointKind::Browserless, ["ws://", "wss://"]),
];

/// The address of a fleet.
#[derive(Clone, Debug)]
pub struct FleetAddress {
    /// At least one.
    pub endpoints: Vec<FleetEndpoint>,
    /// The address on which our proxy listens for the browsers of the fleet.
    pub listen: SocketAddr,
    /// The address of the proxy for the fleet: `HOST:PORT`.
    pub proxy_address: String,
    /// The certificate of the proxy; `None` if browsers reach it without TLS.
    pub proxy_certificate: Option<CertificateFiles>,
}

/// The files of the proxy's certificate, each in PEM (RFC 7468).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, with the intermediate ones after it.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// One endpoint of a fleet.
#[derive(Clone)]
pub struct FleetEndpoint {
    pub kind: EndpointKind,
    /// Without the kind before its scheme and without a fragment. It may contain a token or a password.
    pub url: Secret,
    /// Its part of all browsers, compared to the weights of the other endpoints: 1 to 100.
    pub weight: u32,
    /// `HOST:PORT`, or the host alone, for messages.
    pub name: String,
}

/// What an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointKind {
    /// A WebSocket of the DevTools protocol.
    DevTools,
    /// The hub or router of a Selenium Grid 4.
    Selenium,
    /// Browserless 2: a DevTools WebSocket with a browser of its own for each connection.
    Browserless,
}

/// Which part of a fleet's address is invalid. Endpoints are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidFleetAddress {
    /// There are no or too many endpoints.
    Count,
    /// The URL of this endpoint has no host, an unknown scheme, or a user where none is possible.
    Url(usize),
    /// What follows `#` is not `weight=` with 1 to 100.
    Weight(usize),
    /// The address of the proxy is no `HOST:PORT`, or it is not given and does not follow from the
    /// address on which the proxy listens.
    Proxy,
}

impl FleetAddress {
    /// Whether a setting is the address of a fleet, valid or not. A URL is never taken for the path of a
    /// program, since such a path is told in errors and a URL may have a secret.
    #[must_use]
    pub fn is_fleet(text: &str) -> bool {
        text.contains("://")
    }

    /// Validates the parts of an address. `urls` are the endpoints, separated by white space. Without
    /// `proxy_address`, the fleet connects to `listen`, without TLS.
    ///
    /// # Errors
    /// All invalid parts.
    pub fn new(
        urls: &str,
        listen: SocketAddr,
        proxy_address: Option<String>,
    ) -> Result<Self, Vec<InvalidFleetAddress>> {
        let (mut endpoints, mut invalid) = (vec![], vec![]);
        for (url, number) in urls.split_ascii_whitespace().zip(1..) {
            match FleetEndpoint::parse(url, number) {
                Ok(endpoint) => endpoints.push(endpoint),
                Err(error) => invalid.push(error),
            }
        }
        if !(1..=MAX_ENDPOINTS).contains(&endpoints.len()) && invalid.is_empty() {
            invalid.push(InvalidFleetAddress::Count);
        }
        let is_proxy_valid = match &proxy_address {
            Some(address) => is_host_and_port(address),
            None => !listen.ip().is_unspecified() && listen.port() != 0,
        };
        if !is_proxy_valid {
            invalid.push(InvalidFleetAddress::Proxy);
        }
        if !invalid.is_empty() {
            return Err(invalid);
        }
        let proxy_address = proxy_address.unwrap_or_else(|| listen.to_string());
        Ok(Self { endpoints, listen, proxy_address, proxy_certificate: None })
    }
}

impl FleetEndpoint {
    pub(crate) fn uses_tls(&self) -> bool {
        ["wss://", "https://"].iter().any(|scheme| self.url.expose().starts_with(scheme))
    }

    /// Parses `[KIND+]URL[#weight=WEIGHT]`.
    fn parse(text: &str, number: usize) -> Result<Self, InvalidFleetAddress> {
        let (text, option) =
            text.split_once('#').map_or((text, None), |(text, option)| (text, Some(option)));
        let invalid = InvalidFleetAddress::Url(number);
        let (kind, url) = split_kind(text).ok_or(invalid)?;
        let parsed = Url::parse(url).ok().filter(Url::has_host).ok_or(invalid)?;
        let has_user = !parsed.username().is_empty() || parsed.password().is_some();
        if has_user && kind != EndpointKind::Selenium {
            return Err(invalid);
        }
        let weight = match option {
            None => 1,
            Some(option) => option
                .strip_prefix("weight=")
                .and_then(|weight| weight.parse().ok())
                .filter(|weight| (1..=MAX_WEIGHT).contains(weight))
                .ok_or(InvalidFleetAddress::Weight(number))?,
        };
        let host = parsed.host_str().unwrap_or_default();
        let name = parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Ok(Self { kind, url: Secret::new(url.to_owned()), weight, name })
    }
}

/// Splits an endpoint into its kind and its URL.
fn split_kind(text: &str) -> Option<(EndpointKind, &str)> {
    KINDS.iter().find_map(|(prefix, kind, schemes)| {
        let url = text.strip_prefix(prefix)?;
        schemes.iter().any(|scheme| url.starts_with(scheme)).then_some((*kind, url))
    })
}

fn is_host_and_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        Host::parse(host).is_ok() && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

/// Leaves out the URL, which may contain a token.
impl fmt::Debug for FleetEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("FleetEndpoint");
        fields.field("kind", &self.kind).field("name", &self.name).field("weight", &self.weight);
        fields.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: &str = "wss://fleet.example/?token=geheim";

    #[test]
    fn a_fleet_connects_to_the_address_on_which_the_proxy_listens_or_to_a_given_one() {
        let address = new(FLEET, "10.0.0.7:8181", None).unwrap();
        assert_eq!(address.proxy_address, "10.0.0.7:8181");
        assert!(!format!("{address:?}").contains("geheim"));
        let address = new(FLEET, "0.0.0.0:8181", Some("avouch.internal:8181")).unwrap();
        assert_eq!(address.proxy_address, "avouch.internal:8181");
    }

    #[test]
    fn endpoints_have_a_kind_and_a_weight() {
        let text = "wss://fleet.example/?token=a+b,c \n selenium+https://ada:geheim@grid:4444/wd#weight=3 \
                    browserless+ws://[::1]:3000/chromium#weight=100";
        let address = new(text, "10.0.0.7:8181", None).unwrap();
        let endpoints = address.endpoints.iter();
        let endpoints: Vec<_> = endpoints
            .map(|one| (one.kind, one.url.expose(), one.weight, one.name.as_str()))
            .collect();
        assert_eq!(
            endpoints,
            [
                (EndpointKind::DevTools, "wss://fleet.example/?token=a+b,c", 1, "fleet.example"),
                (EndpointKind::Selenium, "https://ada:geheim@grid:4444/wd", 3, "grid:4444"),
                (EndpointKind::Browserless, "ws://[::1]:3000/chromium", 100, "[::1]:3000"),
            ]
        );
        assert!(!format!("{address:?}").contains("geheim"), "{address:?}");
    }

    #[test]
    fn programs_are_no_fleets_and_no_url_is_a_program() {
        for (text, expected) in [
            ("ws://fleet", true),
            ("selenium+http://grid:4444", true),
            ("browserless+wss://fleet#weight=2 ws://other", true),
            ("chromium", false),
            ("/opt/selenium+http/chrome", false),
            ("http://ada:secret@grid:4444", true),
            ("browserless+https://fleet?token=secret", true),
        ] {
            assert_eq!(FleetAddress::is_fleet(text), expected, "{text}");
        }
    }

    #[test]
    fn all_invalid_parts_are_returned() {
        use InvalidFleetAddress::{Count, Proxy, Url, Weight};
        let many = "ws://a ".repeat(33);
        for (urls, listen, proxy_address, invalid) in [
            (FLEET, "127.0.0.1:0", None, vec![Proxy]),
            (FLEET, "0.0.0.0:8181", None, vec![Proxy]),
            (FLEET, "0.0.0.0:8181", Some("x"), vec![Proxy]),
            (FLEET, "10.0.0.7:8181", Some("avouch.internal:0"), vec![Proxy]),
            ("ws://ada:pw@fleet/", "10.0.0.7:8181", None, vec![Url(1)]),
            ("ws://", "0.0.0.0:8181", None, vec![Url(1), Proxy]),
            ("ws://a http://b ws://c#weight=0", "10.0.0.7:8181", None, vec![Url(2), Weight(3)]),
            ("ws://a#weight=101 ws://b#x", "10.0.0.7:8181", None, vec![Weight(1), Weight(2)]),
            ("browserless+ws://a:b@c", "10.0.0.7:8181", None, vec![Url(1)]),
            (" ", "10.0.0.7:8181", None, vec![Count]),
            (&many, "10.0.0.7:8181", None, vec![Count]),
        ] {
            let refused = new(urls, listen, proxy_address).unwrap_err();
            assert_eq!(refused, invalid, "{urls} {listen}");
        }
    }

    fn new(
        urls: &str,
        listen: &str,
        proxy_address: Option<&str>,
    ) -> Result<FleetAddress, Vec<InvalidFleetAddress>> {
        FleetAddress::new(urls, listen.parse().unwrap(), proxy_address.map(str::to_owned))
    }
}
