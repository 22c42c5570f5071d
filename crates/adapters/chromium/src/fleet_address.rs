//! The address of a fleet, and how its browsers reach our proxy.

use std::{fmt, net::SocketAddr};

use domain::secret::Secret;
use url::{Host, Url};

/// The address of a fleet.
#[derive(Clone)]
pub struct FleetAddress {
    /// A `ws:` or `wss:` URL, which may contain a token.
    pub url: Secret,
    /// The address on which our proxy listens for the browsers of the fleet.
    pub listen: SocketAddr,
    /// The address of the proxy for the fleet: `HOST:PORT`.
    pub proxy_address: String,
}

/// Which part of a fleet's address is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidFleetAddress {
    /// The URL has no host, or a user.
    Url,
    /// The address of the proxy is no `HOST:PORT`, or it is not given and does not follow from the
    /// address on which the proxy listens.
    Proxy,
}

impl FleetAddress {
    /// Validates the parts of an address. Without `proxy_address`, the fleet connects to `listen`.
    ///
    /// # Errors
    /// All invalid parts.
    pub fn new(
        url: &str,
        listen: SocketAddr,
        proxy_address: Option<String>,
    ) -> Result<Self, Vec<InvalidFleetAddress>> {
        let mut invalid = vec![];
        let parsed = Url::parse(url).ok().filter(Url::has_host);
        if !parsed.is_some_and(|url| url.username().is_empty() && url.password().is_none()) {
            invalid.push(InvalidFleetAddress::Url);
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
        Ok(Self { url: Secret::new(url.to_owned()), listen, proxy_address })
    }
}

fn is_host_and_port(address: &str) -> bool {
    let parts = address.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        Host::parse(host).is_ok() && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

/// Leaves out the URL, which may contain a token.
impl fmt::Debug for FleetAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("FleetAddress");
        fields.field("proxy_address", &self.proxy_address).finish_non_exhaustive()
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
    fn all_invalid_parts_are_returned() {
        use InvalidFleetAddress::{Proxy, Url};
        for (url, listen, proxy_address, invalid) in [
            (FLEET, "127.0.0.1:0", None, vec![Proxy]),
            (FLEET, "0.0.0.0:8181", None, vec![Proxy]),
            (FLEET, "0.0.0.0:8181", Some("x"), vec![Proxy]),
            (FLEET, "10.0.0.7:8181", Some("avouch.internal:0"), vec![Proxy]),
            ("ws://ada:pw@fleet/", "10.0.0.7:8181", None, vec![Url]),
            ("ws://", "0.0.0.0:8181", None, vec![Url, Proxy]),
        ] {
            assert_eq!(new(url, listen, proxy_address).unwrap_err(), invalid, "{url} {listen}");
        }
    }

    fn new(
        url: &str,
        listen: &str,
        proxy_address: Option<&str>,
    ) -> Result<FleetAddress, Vec<InvalidFleetAddress>> {
        FleetAddress::new(url, listen.parse().unwrap(), proxy_address.map(str::to_owned))
    }
}
