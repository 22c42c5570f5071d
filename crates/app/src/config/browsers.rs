//! The settings of browsers, local ones or a fleet.

use std::{collections::BTreeMap, net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use chromium::{CertificateFiles, FleetAddress, InvalidFleetAddress};
use chrono::TimeDelta;
use domain::fairness::Quotas;

use super::{
    instances::{HostConfig, InstanceConfig, browser_hosts},
    values::{one_of, socket, within},
};

/// The place where browsers run.
#[derive(Debug, Clone)]
pub enum BrowserConfig {
    Here {
        program: PathBuf,
        /// The memory of one browser, in bytes.
        memory: u64,
        /// Whether they run in a sandbox. Without one, a page that breaks out of Chromium has the
        /// rights of the service.
        sandbox: bool,
    },
    Elsewhere(FleetAddress),
    /// On browser hosts.
    Hosts(HostConfig),
}

/// Reads the quotas of browsers, and how long a session waits for one. By default a quarter of the
/// browsers is reserved for production.
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
    instance: Option<&InstanceConfig>,
    faults: &mut Vec<String>,
) -> BrowserConfig {
    if let Some(hosts) = browser_hosts(values, instance, faults) {
        return BrowserConfig::Hosts(hosts);
    }
    let text =
        |key: &str, default: &str| values.get(key).map_or_else(|| default.to_owned(), Clone::clone);
    let browser = text("browser", "chromium");
    if !FleetAddress::is_fleet(&browser) {
        let memory =
            within(&text("browser_memory_mb", "1536"), "browser_memory_mb", 256..=65_536, faults);
        return BrowserConfig::Here {
            program: browser.into(),
            memory: memory << 20,
            sandbox: one_of(&text("browser_jail", "on"), "browser_jail", "on", "off", faults),
        };
    }
    let listen = text("browser_proxy_listen", "");
    let listen = socket(&listen, "browser_proxy_listen", faults);
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = FleetAddress::new(&browser, listen, values.get("browser_proxy_address").cloned());
    match address {
        Ok(address) => BrowserConfig::Elsewhere(FleetAddress {
            proxy_certificate: proxy_certificate(values, faults),
            ..address
        }),
        Err(invalid) => {
            faults.extend(invalid.into_iter().map(fault));
            BrowserConfig::Here { program: browser.into(), memory: 0, sandbox: true }
        }
    }
}

/// Reads the files of the proxy's certificate; `None` if browsers reach it without TLS.
fn proxy_certificate(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> Option<CertificateFiles> {
    match (values.get("browser_proxy_cert"), values.get("browser_proxy_key")) {
        (Some(certificate), Some(key)) => {
            Some(CertificateFiles { certificate: certificate.into(), key: key.into() })
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            faults.push("browser_proxy_cert and browser_proxy_key need each other".into());
            None
        }
    }
}

fn fault(invalid: InvalidFleetAddress) -> String {
    match invalid {
        InvalidFleetAddress::Count => "browser must have 1 to 32 endpoints".into(),
        InvalidFleetAddress::Url(number) => format!(
            "browser must be a program, or ws(s)://HOST[:PORT]/… without a user, \
             selenium+http(s)://HOST[:PORT] or browserless+ws(s)://HOST[:PORT]/… (endpoint {number})"
        ),
        InvalidFleetAddress::Weight(number) => {
            format!("browser: only #weight=1 to #weight=100 may follow endpoint {number}")
        }
        InvalidFleetAddress::Proxy => {
            "browser_proxy_address must be HOST:PORT, as the fleet sees us".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_has_endpoints_and_a_certificate_for_its_proxy() {
        let listen = ("browser_proxy_listen", "10.0.0.7:8181");
        let grids = ("browser", "selenium+https://grid:4444#weight=2 wss://fleet/?token=x");
        let certificate = [("browser_proxy_cert", "cert.pem"), ("browser_proxy_key", "key.pem")];
        let (config, faults) = read(&[&[listen, grids], &certificate[..]].concat());
        assert_eq!(faults, "");
        let BrowserConfig::Elsewhere(address) = config else { panic!("{config:?}") };
        let weights: Vec<_> = address.endpoints.iter().map(|endpoint| endpoint.weight).collect();
        assert_eq!(weights, [2, 1]);
        assert!(address.proxy_certificate.is_some());
        for (values, fault) in [
            (vec![listen, grids, certificate[0]], "need each other"),
            (vec![listen, ("browser", "ws://a selenium+http://#weight=2")], "(endpoint 2)"),
            (vec![listen, ("browser", "ws://a#weight=0")], "follow endpoint 1"),
            (vec![grids], "browser_proxy_listen must be"),
        ] {
            let (_, faults) = read(&values);
            assert!(faults.contains(fault), "{faults}");
        }
    }

    fn read(values: &[(&str, &str)]) -> (BrowserConfig, String) {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let mut faults = vec![];
        let config = browsers(&values.collect(), None, &mut faults);
        (config, faults.join("; "))
    }
}
