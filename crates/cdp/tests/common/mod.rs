//! What the tests of pools share.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use cdp::{Here, Installation, Jail, PoolOptions, Source};
use domain::{egress::Egress, egress_proxy::EgressProxies, id::BrowserId, request::Location};
use ports::browser::{BrowserSpec, Device, Locale, ObservedSignals};
use uuid::Uuid;

/// A pool of jailed browsers, two at once, none of them ahead of time, that leave from here.
pub(crate) fn options(folder: &Path) -> PoolOptions {
    PoolOptions {
        source: Source::Here(here(folder)),
        capacity: 2,
        warm: 0,
        egress: Egress::default(),
        exits: EgressProxies::default(),
        exit_check: None,
        routes: HashMap::new(),
    }
}

pub(crate) fn here(folder: &Path) -> Here {
    Here {
        executable: "chromium".into(),
        folder: folder.to_owned(),
        memory: 4 << 30,
        jail: Some(Jail {
            helper: env!("CARGO_BIN_EXE_cdp-jail").into(),
            arguments: vec![],
            installation: Installation::find("chromium".as_ref()).unwrap(),
            policies: None,
            cores: 2,
        }),
    }
}

/// A new browser for a session in a country, on pages of one host.
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
