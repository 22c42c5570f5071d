//! The fixtures that the tests of pools share.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use chromium::{BrowserSource, Installation, LocalBrowsers, PoolOptions, Sandbox};
use domain::{egress::Egress, egress_proxy::EgressProxies, id::BrowserId, request::Location};
use ports::browser::{BrowserSpec, Device, Locale, ObservedSignals};
use uuid::Uuid;

/// Returns the options of a pool of at most two sandboxed browsers, none of them warm, without egress
/// proxies.
pub(crate) fn options(folder: &Path) -> PoolOptions {
    PoolOptions {
        source: BrowserSource::Local(local_browsers(folder)),
        capacity: 2,
        warm: 0,
        egress: Egress::default(),
        egress_proxies: EgressProxies::default(),
        country_check_url: None,
        local_hosts: HashMap::new(),
    }
}

pub(crate) fn local_browsers(folder: &Path) -> LocalBrowsers {
    LocalBrowsers {
        executable: "chromium".into(),
        folder: folder.to_owned(),
        memory_limit: 4 << 30,
        sandbox: Some(Sandbox {
            helper: env!("CARGO_BIN_EXE_cdp-jail").into(),
            arguments: vec![],
            installation: Installation::find("chromium".as_ref()).unwrap(),
            policies: None,
            cores: 2,
        }),
    }
}

/// Returns the parameters of a new browser for a session in a country, on pages of one host.
pub(crate) fn spec(host: &str, country: &str) -> BrowserSpec {
    BrowserSpec {
        id: BrowserId::from_uuid(Uuid::new_v4()),
        hosts: BTreeSet::from([host.to_owned()]),
        watch: ObservedSignals::default(),
        device: Device::default(),
        locale: Locale::default(),
        place: Location { country: country.to_owned(), region: None, city: None },
    }
}
