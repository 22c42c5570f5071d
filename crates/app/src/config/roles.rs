//! What a process does: `role`.

use std::collections::BTreeMap;

use super::{browsers::BrowserConfig, instances::InstanceConfig};

/// What a process does. A process without `browser` among its roles runs no browsers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// Serves partners, applicants and the portal, and owns sessions.
    pub api: bool,
    /// Runs browsers; alone, for the instances that ask for them, without a database.
    pub browser: bool,
    /// Sends webhooks, mails and messages, and erases what is too old.
    pub delivery: bool,
}

impl Roles {
    const ALL: Self = Self { api: true, browser: true, delivery: true };

    /// Whether the process is a browser host: it runs browsers for others, and nothing else.
    #[must_use]
    pub const fn is_browser_host(self) -> bool {
        self.browser && !self.api && !self.delivery
    }
}

/// Reads `role`, a list; all roles by default.
pub(super) fn roles(values: &BTreeMap<String, String>, faults: &mut Vec<String>) -> Roles {
    let Some(list) = values.get("role") else { return Roles::ALL };
    let mut roles = Roles { api: false, browser: false, delivery: false };
    for name in list.split(',').map(str::trim) {
        match name {
            "api" => roles.api = true,
            "browser" => roles.browser = true,
            "delivery" => roles.delivery = true,
            _ => faults.push(format!("role: {name} is none of api, browser, delivery")),
        }
    }
    if roles.browser && roles.delivery && !roles.api {
        faults.push("role: browser and delivery together need api".into());
    }
    roles
}

/// Returns whether sessions get no browsers from this process: it must not run any, and has no hosts.
pub(super) fn has_no_browsers(
    roles: Roles,
    browser: &BrowserConfig,
    instance: Option<&InstanceConfig>,
    faults: &mut Vec<String>,
) -> bool {
    let has_none = !roles.browser && !matches!(browser, BrowserConfig::Hosts(_));
    if roles.api && has_none && instance.is_none() {
        faults.push("role: api without browser needs browser_hosts or instance_listen".into());
    }
    has_none
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> (Roles, String) {
        let mut faults = vec![];
        let values = BTreeMap::from([("role".to_owned(), list.to_owned())]);
        (roles(&values, &mut faults), faults.join("; "))
    }

    #[test]
    fn a_process_has_all_roles_unless_some_are_named() {
        assert_eq!(roles(&BTreeMap::new(), &mut vec![]), Roles::ALL);
        assert_eq!(read("api, browser,delivery"), (Roles::ALL, String::new()));
        let (host, faults) = read("browser");
        assert!(host.is_browser_host() && faults.is_empty());
        let (api, faults) = read("api");
        assert!(api.api && !api.browser && !api.delivery && faults.is_empty());
        for wrong in ["", "apis", "api,", "browser,delivery"] {
            assert!(read(wrong).1.starts_with("role: "), "{wrong}");
        }
    }
}
