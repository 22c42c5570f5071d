//! The settings of connections between the instances of a deployment.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use instances::IdentityFiles;

use super::values::socket;

/// The name in the certificates of instances, if none is given.
const NAME: &str = "instance.avouch.internal";
/// The name in the certificates of browser hosts, if none is given.
const HOST_NAME: &str = "browser-host.avouch.internal";
/// The maximum number of names of browser hosts.
const MAX_HOST_NAMES: usize = 64;
const KEYS: [&str; 5] =
    ["instance_address", "instance_cert", "instance_key", "instance_roots", "instance_name"];

/// How other instances reach this one, and how they know each other.
#[derive(Debug, Clone)]
pub struct InstanceConfig {
    pub listen: SocketAddr,
    /// `HOST:PORT`
    pub address: String,
    pub files: IdentityFiles,
}

/// The browser hosts of an instance.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// `HOST:PORT` each.
    pub names: Vec<String>,
    pub files: IdentityFiles,
}

/// Where a browser host serves instances, and its certificate.
#[derive(Debug, Clone)]
pub struct HostIdentityConfig {
    pub listen: SocketAddr,
    pub files: IdentityFiles,
}

fn host_name(values: &BTreeMap<String, String>) -> String {
    values.get("browser_host_name").map_or_else(|| HOST_NAME.to_owned(), Clone::clone)
}

/// Returns what a browser host listens on, from the settings of an instance.
pub(super) fn host_identity(
    values: &BTreeMap<String, String>,
    instance: Option<&InstanceConfig>,
) -> Option<HostIdentityConfig> {
    let InstanceConfig { listen, files, .. } = instance?.clone();
    let files = IdentityFiles { name: host_name(values), peer: files.name.clone(), ..files };
    Some(HostIdentityConfig { listen, files })
}

/// Reads `browser_hosts`, a list; `None` without it.
pub(super) fn browser_hosts(
    values: &BTreeMap<String, String>,
    instance: Option<&InstanceConfig>,
    faults: &mut Vec<String>,
) -> Option<HostConfig> {
    let list = values.get("browser_hosts")?;
    let names: Vec<_> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.len() > MAX_HOST_NAMES || !names.iter().all(|name| is_address(name)) {
        faults
            .push(format!("browser_hosts must be at most {MAX_HOST_NAMES} HOST:PORT, with commas"));
    }
    if values.contains_key("browser") {
        faults.push("browser and browser_hosts exclude each other".into());
    }
    let Some(instance) = instance else {
        faults.push("browser_hosts needs instance_listen".into());
        return None;
    };
    let files = IdentityFiles { peer: host_name(values), ..instance.files.clone() };
    Some(HostConfig { names, files })
}

/// `None` for a process that is alone.
pub(super) fn instances(
    values: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) -> Option<InstanceConfig> {
    let Some(listen) = values.get("instance_listen") else {
        if KEYS.iter().any(|key| values.contains_key(*key)) {
            faults.push(format!("{} need instance_listen", KEYS.join(", ")));
        }
        return None;
    };
    let listen = socket(listen, "instance_listen", faults)?;
    let address = values.get("instance_address").cloned();
    // Instances know browser hosts from their own settings.
    let is_host = values.get("role").is_some_and(|role| role.trim() == "browser");
    if address.is_none() && listen.ip().is_unspecified() && !is_host {
        faults.push(format!("instance_address is needed: other instances do not reach {listen}"));
    }
    let address = address.unwrap_or_else(|| listen.to_string());
    if !is_address(&address) {
        faults.push("instance_address must be HOST:PORT".into());
    }
    let mut file = |key: &str| {
        let given = values.get(key).map(PathBuf::from);
        given.unwrap_or_else(|| {
            faults.push(format!("instance_listen needs {key}"));
            PathBuf::new()
        })
    };
    let name = values.get("instance_name").map_or_else(|| NAME.to_owned(), Clone::clone);
    let files = IdentityFiles {
        certificate: file("instance_cert"),
        key: file("instance_key"),
        roots: file("instance_roots"),
        peer: name.clone(),
        name,
    };
    Some(InstanceConfig { listen, address, files })
}

fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    text.len() <= 255 && parts.is_some_and(|(host, port)| !host.is_empty() && is_port(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> (Option<InstanceConfig>, String) {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let mut faults = vec![];
        let config = instances(&values.collect(), &mut faults);
        (config, faults.join("; "))
    }

    #[test]
    fn a_process_is_alone_unless_it_listens_for_others() {
        assert!(read(&[]).0.is_none());
        let (config, faults) = read(&[("instance_cert", "cert.pem")]);
        assert!(config.is_none() && faults.ends_with("need instance_listen"), "{faults}");
    }

    #[test]
    fn the_files_and_an_address_that_others_reach_are_needed() {
        let files =
            [("instance_cert", "cert.pem"), ("instance_key", "key.pem"), ("instance_roots", "ca")];
        let listen = ("instance_listen", "10.0.0.1:8443");
        let (config, faults) = read(&[&files[..], &[listen]].concat());
        assert_eq!((config.unwrap().address.as_str(), faults.as_str()), ("10.0.0.1:8443", ""));
        for (values, fault) in [
            (vec![listen], "instance_listen needs instance_cert"),
            (vec![("instance_listen", "0.0.0.0:8443")], "instance_address is needed"),
            (vec![listen, ("instance_address", "host")], "must be HOST:PORT"),
            (vec![listen, ("instance_address", "host:0")], "must be HOST:PORT"),
        ] {
            let (_, faults) = read(&values);
            assert!(faults.contains(fault), "{faults}");
        }
    }

    #[test]
    fn browser_hosts_have_a_name_of_their_own_and_need_a_certificate() {
        let files =
            [("instance_cert", "cert.pem"), ("instance_key", "key.pem"), ("instance_roots", "ca")];
        let read = |values: &[(&str, &str)]| {
            let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let (values, mut faults) = (values.collect(), vec![]);
            let instance = instances(&values, &mut faults);
            let hosts = browser_hosts(&values, instance.as_ref(), &mut faults);
            (hosts, host_identity(&values, instance.as_ref()), faults.join("; "))
        };
        let (listen, hosts) = (("instance_listen", "10.0.0.1:1"), ("browser_hosts", "a:1, b:2"));
        let (used, own, faults) = read(&[&files[..], &[listen, hosts]].concat());
        let (used, own) = (used.unwrap(), own.unwrap());
        assert_eq!((used.names, faults), (vec!["a:1".to_owned(), "b:2".to_owned()], String::new()));
        assert_eq!((&*used.files.name, &*used.files.peer), (NAME, HOST_NAME));
        assert_eq!((&*own.files.name, &*own.files.peer), (HOST_NAME, NAME));
        let (_, host, faults) =
            read(&[&files[..], &[("instance_listen", "0.0.0.0:1"), ("role", "browser")]].concat());
        assert!(host.is_some() && faults.is_empty(), "{faults}");
        for (values, fault) in [
            (vec![hosts], "browser_hosts needs instance_listen"),
            (vec![listen, ("browser_hosts", "a:1,,b:2")], "browser_hosts must be"),
            (vec![listen, ("browser_hosts", "a")], "browser_hosts must be"),
            (vec![listen, hosts, ("browser", "chromium")], "exclude each other"),
        ] {
            assert!(read(&values).2.contains(fault), "{fault}");
        }
    }
}
