//! Validates the hosts and URLs of a definition.

use std::borrow::Cow;

use super::{Checker, top};
use crate::workflow::{JsonPath, Node, Request, custom_url};

const MAX_HOSTS: usize = 50;
/// The length of a DNS name (RFC 1035, section 2.3.4).
const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;
const MAX_URL_BYTES: usize = 2048;
/// The ports that browsers do not open (WHATWG Fetch, "bad port"), without 0.
const BAD_PORTS: [u16; 82] = [
    1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
    103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465,
    512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993,
    995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668,
    6669, 6679, 6697, 10080,
];

impl Checker<'_> {
    pub(super) fn hosts(&mut self) {
        let definition = self.definition;
        if definition.hosts.is_empty() {
            self.error(&top("hosts"), "must name at least one host");
        }
        for (member, hosts) in [("hosts", &definition.hosts), ("ssoHosts", &definition.sso_hosts)] {
            if hosts.len() > MAX_HOSTS {
                self.error(&top(member), format!("must be at most {MAX_HOSTS}"));
            }
            for (index, host) in hosts.iter().enumerate().filter(|(_, host)| !is_dns_name(host)) {
                let rule = "must be a DNS name in lower case, as www.example.com, without scheme, \
                            port, path or wildcard";
                self.error(&top(member).item(index), format!("`{host}` {rule}"));
            }
        }
    }

    pub(super) fn urls(&mut self) {
        let definition = self.definition;
        let nodes = definition.nodes.iter().filter_map(|(name, node)| {
            let Node::Goto { url, .. } = node else { return None };
            Some((top("nodes").member(name).member("url"), url))
        });
        let requests = definition.requests.iter();
        let requests = requests
            .map(|(name, request)| (top("requests").member(name).member("url"), &request.url));
        let login = std::iter::once((top("loginUrl"), &definition.login_url));
        for (path, url) in nodes.chain(requests).chain(login).collect::<Vec<_>>() {
            let Some(url) = self.without_custom_url(&path, url) else { continue };
            if let Some(error) = url_error(&url, &definition.hosts) {
                self.error(&path, error);
            }
            self.placeholders(&path, &url);
        }
        self.custom_url();
        for (name, request) in &definition.requests {
            let path = top("requests").member(name);
            self.range(&path.member("maxBytes"), request.max_bytes, 1, Request::MAX_BYTES);
            self.range(&path.member("expectStatus"), request.expect_status.into(), 100, 599);
            self.request(&path, request);
        }
    }
}

impl Checker<'_> {
    /// Returns a URL with one of the hosts in place of the placeholder for the address; `None` if
    /// nothing else is to be checked.
    fn without_custom_url<'a>(&mut self, path: &JsonPath, url: &'a str) -> Option<Cow<'a, str>> {
        if !custom_url::is_used_in(url) {
            return Some(Cow::Borrowed(url));
        }
        if self.definition.custom_url.is_none() {
            let wrong = "which the definition does not have: add `customUrl` with a pattern";
            self.error(path, format!("`{url}` stands for the address of a session, {wrong}"));
            return None;
        }
        let is_login = *path == top("loginUrl");
        if is_login {
            self.error(path, "must be a fixed URL: it is shown before a session has an address");
            return None;
        }
        let rest = url.strip_prefix(custom_url::CUSTOM_ORIGIN)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            self.error(path, format!("`{url}` must have a `/` after `{{customOrigin}}`"));
            return None;
        }
        let host = self.definition.hosts.first()?;
        Some(Cow::Owned(format!("https://{host}{rest}")))
    }

    fn custom_url(&mut self) {
        let definition = self.definition;
        let Some(custom) = &definition.custom_url else { return };
        let path = top("customUrl");
        if !custom.pattern.starts_with('/') || custom.pattern.len() > MAX_URL_BYTES {
            let rule = "must be a path with `*` for any characters, as /users/*, without host";
            self.error(&path.member("pattern"), rule);
        }
        self.text(&path.member("textKey"), &custom.text_key);
        self.text(&path.member("wrongTextKey"), &custom.wrong_text_key);
        self.range(&path.member("timeoutSeconds"), custom.timeout_seconds, 5, 3600);
        let opens =
            |node: &Node| matches!(node, Node::Goto { url, .. } if url == custom_url::CUSTOM_URL);
        if !definition.nodes.values().any(opens) {
            let wrong = "is not used: no `goto` node has the URL `{customUrl}`";
            self.error(&path, wrong);
        }
    }
}

/// Returns why a URL is not allowed in the definition. Only sites under `localhost`, such as the
/// sandbox, may use `http` and other ports.
fn url_error(url: &str, hosts: &[String]) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
    if url.len() > MAX_URL_BYTES || !url.bytes().all(allowed) {
        let rule = "visible ASCII characters, without a backslash";
        return Some(format!("a URL must be at most {MAX_URL_BYTES} {rule}"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some(format!("`{url}` must be a whole URL, as https://www.example.com/account"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some(format!("`{url}` must not have a user name or password"));
    }
    let (host, port) = authority.split_once(':').map_or((authority, None), |(h, p)| (h, Some(p)));
    let local = host.ends_with(".localhost");
    if scheme != "https" && !(scheme == "http" && local) {
        return Some(format!("`{url}` must begin with https://"));
    }
    if let Some(error) = port.and_then(|port| port_error(url, port, local)) {
        return Some(error);
    }
    if !hosts.iter().any(|allowed| allowed == host) {
        return Some(format!("`{url}` is on `{host}`, which is not one of the hosts"));
    }
    None
}

/// Returns why a port is not allowed in a URL.
fn port_error(url: &str, port: &str, local: bool) -> Option<String> {
    let number = port.parse::<u16>().ok().filter(|number| *number != 0);
    match number {
        Some(443) => None,
        Some(blocked) if local && BAD_PORTS.contains(&blocked) => Some(format!(
            "`{url}` has a port that browsers do not open: {blocked} is that of another protocol; \
             serve the site on another port, as 8080"
        )),
        Some(_) if local => None,
        Some(_) | None => {
            Some(format!("`{url}` must have no port: browsers reach a platform on port 443 only"))
        }
    }
}

/// Returns whether the text is a DNS name of ASCII letters in lower case, digits and hyphens
/// (RFC 1123, section 2.1), and no IPv4 address. Other letters are written as A-labels (RFC 5890).
fn is_dns_name(host: &str) -> bool {
    let label = |label: &str| {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= MAX_HOST_BYTES
        && host.split('.').all(label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_on_the_hosts_are_allowed() {
        let hosts = ["a.test", "a.localhost"].map(str::to_owned);
        for url in [
            "https://a.test",
            "https://a.test:443/x?y#z",
            "http://a.localhost/",
            "http://a.localhost:8080/login",
            "https://a.localhost:81/",
        ] {
            assert_eq!(url_error(url, &hosts), None, "{url}");
        }
        for url in [
            "",
            "a.test/x",
            "http://a.test/",
            "https://a.test:9443/",
            "https://a.test:/",
            "https://b.test/",
            "https://a.test@b.test/",
            "https://a.test\\@b.test/",
            "https://a.test.b.test/",
            "https://A.test/",
            "javascript://a.test/%0aalert(1)",
            "https://a.test/a b",
            "http://a.localhost:0/",
            "http://a.localhost:99999/",
            "http://a.localhost:6000/",
            "https://a.localhost:25/",
        ] {
            assert!(url_error(url, &hosts).is_some(), "{url}");
        }
    }

    #[test]
    fn hosts_are_dns_names() {
        for host in ["a.test", "localhost", "xn--bcher-kva.example", "1.example", "a-b.c"] {
            assert!(is_dns_name(host), "{host}");
        }
        let long = format!("{}.test", "a".repeat(64));
        for host in [
            "",
            "A.test",
            "a.test:8443",
            "https://a.test",
            "a.test/",
            "*.a.test",
            "a..test",
            "a.test.",
            "-a.test",
            "a-.test",
            "127.0.0.1",
            "[::1]",
            "b\u{fc}cher.example",
            "a_b.test",
            &long,
        ] {
            assert!(!is_dns_name(host), "{host}");
        }
    }
}
