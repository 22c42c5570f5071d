//! The hosts of a URL, each with a configuration of its own: each has its own time to answer, and
//! any of them can be asked first.

use std::net::{IpAddr, SocketAddr};

use tokio_postgres::{Config, config::Host};

const DEFAULT_PORT: u16 = 5432;

/// One of the hosts of a URL.
pub(super) struct DatabaseHost {
    /// For messages, without user and password.
    pub(super) name: String,
    /// The configuration of the URL with this host alone.
    pub(super) config: Config,
}

impl DatabaseHost {
    /// Returns the hosts of a configuration in their order.
    pub(super) fn all(config: &Config) -> Vec<Self> {
        (0..count(config)).map(|number| Self::nth(config, number)).collect()
    }

    fn nth(config: &Config, number: usize) -> Self {
        let host = config.get_hosts().get(number);
        let address = config.get_hostaddrs().get(number).copied();
        let port = config.get_ports().get(number).or(config.get_ports().first()).copied();
        let mut alone = without_hosts(config);
        if let Some(host) = host {
            match host {
                Host::Tcp(name) => alone.host(name),
                Host::Unix(folder) => alone.host_path(folder),
            };
        }
        if let Some(address) = address {
            alone.hostaddr(address);
        }
        if let Some(port) = port {
            alone.port(port);
        }
        Self { name: name(host, address, port.unwrap_or(DEFAULT_PORT)), config: alone }
    }

    /// Returns whether connections stay on this machine.
    pub(super) fn is_local(&self) -> bool {
        let local = |host: &Host| match host {
            Host::Tcp(name) => {
                name == "localhost"
                    || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Host::Unix(_) => true,
        };
        self.config.get_hostaddrs().iter().all(IpAddr::is_loopback)
            && self.config.get_hosts().iter().all(local)
    }
}

/// Returns whether a configuration has as many names, addresses and ports as it has hosts, as far
/// as it has any. One port is that of all hosts.
pub(super) fn is_consistent(config: &Config) -> bool {
    let fits = |number: usize| number == 0 || number == count(config);
    let ports = config.get_ports().len();
    fits(config.get_hosts().len())
        && fits(config.get_hostaddrs().len())
        && (ports == 1 || fits(ports))
}

fn count(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

fn name(host: Option<&Host>, address: Option<IpAddr>, port: u16) -> String {
    match (host, address) {
        (Some(Host::Tcp(host)), _) => format!("{host}:{port}"),
        (Some(Host::Unix(folder)), _) => folder.display().to_string(),
        (None, Some(address)) => SocketAddr::new(address, port).to_string(),
        (None, None) => String::new(),
    }
}

/// Copies a configuration without its hosts, which cannot be removed from it.
fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(database) = config.get_dbname() {
        copy.dbname(database);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(application) = config.get_application_name() {
        copy.application_name(application);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        copy.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        copy.keepalives_retries(retries);
    }
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_all_parameters_of_the_url() {
        let url = "postgres://ada:pw@db:6432/avouch?hostaddr=10.0.0.1&options=-c%20jit%3Doff\
                   &application_name=avouch&sslmode=require&sslnegotiation=direct&connect_timeout=3\
                   &tcp_user_timeout=4&keepalives=0&keepalives_idle=5&keepalives_interval=6\
                   &keepalives_retries=7&target_session_attrs=read-write&channel_binding=require\
                   &load_balance_hosts=random";
        let config: Config = url.parse().unwrap();
        let hosts = DatabaseHost::all(&config);
        assert_eq!(hosts.len(), 1);
        assert_eq!(hosts[0].config, config);
    }

    #[test]
    fn each_host_has_its_port_and_its_address() {
        let cases: [(&str, &[&str]); 4] = [
            ("postgres://ada@db", &["db:5432"]),
            ("postgres://ada@db-1:1,db-2/x", &["db-1:1", "db-2:5432"]),
            ("postgres://ada@%2Fvar%2Frun,db:2/x", &["/var/run", "db:2"]),
            ("postgres:///x?hostaddr=10.0.0.1,::1&port=7", &["10.0.0.1:7", "[::1]:7"]),
        ];
        for (url, expected) in cases {
            let config: Config = url.parse().unwrap();
            let hosts = DatabaseHost::all(&config);
            let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
            assert_eq!(names, expected, "{url}");
            for (number, host) in hosts.iter().enumerate() {
                let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
                assert_eq!(host.config.get_hosts().first(), hosts.get(number), "{url}");
                assert_eq!(host.config.get_hostaddrs().first(), addresses.get(number), "{url}");
            }
        }
    }
}
