//! The egress policy: the addresses that the service may connect to on behalf of a third party.
//! These are public addresses and the operator's exceptions. Browsers, webhooks and the attestor
//! share the policy.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

/// An egress policy: public addresses and the operator's exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    exceptions: Vec<Exception>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    /// A host name or address with a port.
    Host { host: String, port: u16 },
    /// A network, with any port.
    Network { base: IpAddr, bits: u8 },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither HOST:PORT nor ADDRESS/BITS")]
pub struct InvalidException(String);

impl Egress {
    /// Parses the exceptions, a comma-separated list of `HOST:PORT` and CIDR blocks.
    ///
    /// # Errors
    /// The first item that is neither.
    pub fn allowing(list: &str) -> Result<Self, InvalidException> {
        let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
        let exceptions = items.map(exception).collect::<Result<_, _>>()?;
        Ok(Self { exceptions })
    }

    /// Returns whether a connection to `host` may go to `address`.
    #[must_use]
    pub fn permits(&self, host: &str, address: SocketAddr) -> bool {
        is_public(address.ip())
            || self.names(host, address.port())
            || self.exceptions.iter().any(|exception| match exception {
                Exception::Host { host, port } => {
                    *port == address.port() && host.parse() == Ok(address.ip())
                }
                Exception::Network { base, bits } => contains(*base, *bits, address.ip()),
            })
    }

    /// Returns whether a connection to `host` may go to `ip` on some port. It is for resolvers,
    /// which do not know the port; the caller has checked the port with [`Egress::names`].
    #[must_use]
    pub fn permits_any_port(&self, host: &str, ip: IpAddr) -> bool {
        is_public(ip)
            || self.exceptions.iter().any(|exception| match exception {
                Exception::Host { host: named, .. } => named.eq_ignore_ascii_case(host),
                Exception::Network { base, bits } => contains(*base, *bits, ip),
            })
    }

    /// Returns the policy without the exceptions for single hosts, for connections to a host on a
    /// port that the operator has not named.
    #[must_use]
    pub fn networks_alone(&self) -> Self {
        let networks = |exception: &&Exception| matches!(exception, Exception::Network { .. });
        Self { exceptions: self.exceptions.iter().filter(networks).cloned().collect() }
    }

    /// Returns whether resolving a host can lead to a permitted address: the host may be public, or
    /// in one of the operator's networks.
    #[must_use]
    pub fn may_permit(&self, host: &str, port: u16) -> bool {
        let mut exceptions = self.exceptions.iter();
        let has_network = exceptions.any(|entry| matches!(entry, Exception::Network { .. }));
        has_network || may_be_public(host) || self.names(host, port)
    }

    /// Returns whether the operator has named exactly this host and port.
    #[must_use]
    pub fn names(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.exceptions.iter().any(|exception| match exception {
            Exception::Host { host: named, port: p } => {
                *p == port && named.eq_ignore_ascii_case(host)
            }
            Exception::Network { base, bits } => {
                host.parse().is_ok_and(|ip| contains(*base, *bits, ip))
            }
        })
    }
}

/// Returns whether a host may be on the public internet. It is for connections that a proxy makes
/// and for names that it resolves. An address has to be public; a name must not be one of those
/// whose meaning depends on the network (RFC 6761, RFC 6762, RFC 8375 and the reserved `internal`).
#[must_use]
pub fn may_be_public(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    if let Ok(ip) = host.parse() {
        return is_public(ip);
    }
    let last = host.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    // A host that ends with a number is an address in a form that some resolvers accept.
    let number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    let local =
        ["localhost", "invalid", "local", "internal", "intranet", "lan", "home", "corp", "arpa"];
    host.contains('.') && !number && !local.contains(&last.as_str())
}

/// A list of networks in CIDR notation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    /// The networks of all addresses.
    #[must_use]
    pub fn all() -> Self {
        Self(vec![(IpAddr::from([0; 4]), 0), (IpAddr::from([0_u16; 8]), 0)])
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether one of the networks contains the address.
    #[must_use]
    pub fn contain(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|(base, bits)| contains(*base, *bits, ip))
    }
}

/// Parses a comma-separated list of `ADDRESS/BITS`; an address without bits is a network of one
/// address.
impl FromStr for Networks {
    type Err = InvalidNetwork;

    fn from_str(list: &str) -> Result<Self, InvalidNetwork> {
        let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
        let networks =
            items.map(|item| network(item).ok_or_else(|| InvalidNetwork(item.to_owned())));
        Ok(Self(networks.collect::<Result<_, _>>()?))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not ADDRESS/BITS")]
pub struct InvalidNetwork(String);

fn network(item: &str) -> Option<(IpAddr, u8)> {
    let (base, bits) = item.split_once('/').unwrap_or((item, ""));
    let base: IpAddr = base.parse().ok()?;
    let width = if base.is_ipv4() { 32 } else { 128 };
    let bits = if bits.is_empty() { width } else { bits.parse().ok()? };
    (bits <= width).then_some((base, bits))
}

fn exception(item: &str) -> Result<Exception, InvalidException> {
    let invalid = || InvalidException(item.to_owned());
    if item.contains('/') {
        let (base, bits) = network(item).ok_or_else(invalid)?;
        return Ok(Exception::Network { base, bits });
    }
    let (host, port) = item.rsplit_once(':').ok_or_else(invalid)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().map_err(|_| invalid())?;
    if host.is_empty() {
        return Err(invalid());
    }
    Ok(Exception::Host { host: host.to_owned(), port })
}

fn contains(base: IpAddr, bits: u8, ip: IpAddr) -> bool {
    match (base, ip) {
        (IpAddr::V4(base), IpAddr::V4(ip)) => {
            let shift = 32_u32.saturating_sub(u32::from(bits));
            let high = |a: Ipv4Addr| u32::from(a).checked_shr(shift).unwrap_or(0);
            high(base) == high(ip)
        }
        (IpAddr::V6(base), IpAddr::V6(ip)) => {
            let shift = 128_u32.saturating_sub(u32::from(bits));
            let high = |a: Ipv6Addr| u128::from(a).checked_shr(shift).unwrap_or(0);
            high(base) == high(ip)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

/// Returns whether an address is public: not in IANA's special-purpose registries (RFC 6890). An
/// IPv6 address that embeds an IPv4 address is public if that one is.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || ip.is_multicast()
        || ip.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| {
        is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
    };
    match ip.segments() {
        // IPv4-mapped (RFC 4291), and translated with the well-known prefix (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => v4(high, low),
        // Global unicast is 2000::/3, without Teredo, ORCHID, documentation and similar prefixes.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_whose_meaning_depends_on_the_network_are_not_public() {
        for host in ["example.com", "EXAMPLE.COM.", "1.1.1.1", "[2606:4700::1111]", "xn--a.test"] {
            assert!(may_be_public(host), "{host}");
        }
        for host in [
            "localhost",
            "a.localhost",
            "printer.local",
            "db.internal",
            "router.lan",
            "x.home.arpa",
            "router",
            "10.0.0.1",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "127.1",
            "0x7f.1",
            "a.0x7f",
            "",
        ] {
            assert!(!may_be_public(host), "{host}");
        }
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
        let special = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
            "fd00:ec2::254",
        ];
        for ip in special {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808"] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn the_operators_exceptions_are_permitted() {
        let egress = Egress::allowing("127.0.0.1:8090, 10.0.0.0/8,hooks.internal:80").unwrap();
        assert!(egress.permits("127.0.0.1", "127.0.0.1:8090".parse().unwrap()));
        assert!(!egress.permits("127.0.0.1", "127.0.0.1:8091".parse().unwrap()));
        assert!(egress.permits("x", "10.200.0.1:443".parse().unwrap()));
        assert!(egress.permits("hooks.internal", "192.168.0.9:80".parse().unwrap()));
        assert!(!egress.permits("other.internal", "192.168.0.9:80".parse().unwrap()));
        assert!(Egress::allowing("nonsense").is_err());
        assert!(Egress::allowing("10.0.0.0/33").is_err());
    }
}
