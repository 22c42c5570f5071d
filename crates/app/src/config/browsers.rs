//! The settings of browsers, local or in a fleet.

use std::{collections::BTreeMap, fmt, net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use chrono::TimeDelta;
use domain::{fairness::Quotas, secret::Secret};

use super::values::{one_of, socket, within};

/// The settings of browsers.
#[derive(Debug, Clone)]
pub enum BrowserConfig {
    Here {
        program: PathBuf,
        /// The memory limit of one browser, in bytes.
        memory: u64,
        /// Whether browsers run in the sandbox; without it a page that breaks out of Chromium has
        /// the rights of the service.
        jail: bool,
    },
    Elsewhere(FleetAddress),
}

/// The connection to a fleet, and the proxy for its browsers.
#[derive(Clone)]
pub struct FleetAddress {
    /// A `ws:` or `wss:` URL, which may contain a token.
    pub url: Secret,
    /// The listen address of the proxy for the fleet's browsers.
    pub listen: SocketAddr,
    /// The proxy's address as seen by the fleet: `HOST:PORT`.
    pub address: String,
}

/// Omits the URL, which may contain a token.
impl fmt::Debug for FleetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetAddress").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Reads the quotas of browsers and how long a session waits for one. By default a quarter of the
/// browsers is not available to development keys.
pub(super) fn quotas(
    values: &BTreeMap<String, String>,
    total: u64,
    bounded: &mut impl FnMut(&str, &str, RangeInclusive<u64>) -> u64,
) -> (Quotas, TimeDelta) {
    let given = |key: &str| values.contains_key(key);
    let part = |number: u64| usize::try_from(number.min(total)).unwrap_or(1);
    let per_team = bounded("browsers_per_team", "1000", 1..=1000);
    let development = bounded("browsers_development", "1000", 1..=1000);
    let reserved = total.saturating_sub(total / 4);
    let development = if given("browsers_development") { development } else { reserved };
    let seconds = bounded("browser_queue_seconds", "300", 30..=3600);
    let waiting = bounded("browser_queue_per_team", "100", 1..=2000);
    let quotas = Quotas {
        total: part(total),
        per_team: part(per_team),
        development: part(development),
        waiting_per_team: usize::try_from(waiting).unwrap_or(1),
    };
    (quotas, TimeDelta::seconds(i64::try_from(seconds).unwrap_or(300)))
}

/// Reads `browser` and the settings that depend on it.
pub(super) fn browsers(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> BrowserConfig {
    let text =
        |key: &str, default: &str| values.get(key).map_or_else(|| default.to_owned(), Clone::clone);
    let browser = text("browser", "chromium");
    if !browser.starts_with("ws://") && !browser.starts_with("wss://") {
        let memory =
            within(&text("browser_memory_mb", "1536"), "browser_memory_mb", 256..=65_536, faults);
        return BrowserConfig::Here {
            program: browser.into(),
            memory: memory << 20,
            jail: one_of(&text("browser_jail", "on"), "browser_jail", "on", "off", faults),
        };
    }
    let plain = url::Url::parse(&browser)
        .is_ok_and(|url| url.has_host() && url.username().is_empty() && url.password().is_none());
    if !plain {
        faults.push("browser must be a program, or ws(s)://HOST[:PORT]/… without a user".into());
    }
    let listen = text("browser_proxy_listen", "");
    let listen = socket(&listen, "browser_proxy_listen", faults);
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = values.get("browser_proxy_address");
    let known = address.is_some() || (!listen.ip().is_unspecified() && listen.port() != 0);
    let fine = |address: &String| {
        let parts = address.rsplit_once(':');
        parts.is_some_and(|(host, port)| {
            let port = port.parse::<u16>().is_ok_and(|port| port != 0);
            url::Host::parse(host).is_ok() && port
        })
    };
    if !known || address.is_some_and(|address| !fine(address)) {
        faults.push("browser_proxy_address must be HOST:PORT, as the fleet sees us".into());
    }
    let address = address.cloned().unwrap_or_else(|| listen.to_string());
    BrowserConfig::Elsewhere(FleetAddress { url: Secret::new(browser), listen, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Result<BrowserConfig, Vec<String>> {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let mut faults = vec![];
        let read = browsers(&values.collect(), &mut faults);
        if faults.is_empty() { Ok(read) } else { Err(faults) }
    }

    #[test]
    fn a_fleet_needs_a_way_back_to_us() {
        let fleet = ("browser", "wss://fleet.example/?token=geheim");
        let Ok(BrowserConfig::Elsewhere(address)) =
            read(&[fleet, ("browser_proxy_listen", "10.0.0.7:8181")])
        else {
            panic!("a fleet");
        };
        assert_eq!(address.address, "10.0.0.7:8181");
        assert!(!format!("{address:?}").contains("geheim"));
        let behind = ("browser_proxy_address", "avouch.internal:8181");
        assert!(read(&[fleet, ("browser_proxy_listen", "0.0.0.0:8181"), behind]).is_ok());
        for values in [
            vec![fleet],
            vec![fleet, ("browser_proxy_listen", "0.0.0.0:8181")],
            vec![fleet, ("browser_proxy_listen", "0.0.0.0:8181"), ("browser_proxy_address", "x")],
            vec![("browser", "ws://ada:pw@fleet/"), ("browser_proxy_listen", "10.0.0.7:8181")],
        ] {
            assert!(read(&values).is_err(), "{}", values.len());
        }
    }
}
