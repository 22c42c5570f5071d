//! The settings of connections between the instances of a deployment.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use instances::IdentityFiles;

use super::values::socket;

/// The name in the certificates of instances, if none is given.
const NAME: &str = "instance.avouch.internal";
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
    if address.is_none() && listen.ip().is_unspecified() {
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
    let files = IdentityFiles {
        certificate: file("instance_cert"),
        key: file("instance_key"),
        roots: file("instance_roots"),
        name: values.get("instance_name").map_or_else(|| NAME.to_owned(), Clone::clone),
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
}
